"""Workers as the driver sees them: submit a batch, wait for completions, replace the lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from neuronqa.domain.job import Job, JobResult


@dataclass(frozen=True, kw_only=True)
class Completion:
    """A batch's end: a result per job, in order. None when the worker was lost with it, and `lost` says how."""

    token: int
    results: Sequence[JobResult] | None
    lost: str = ""


class Fleet(Protocol):
    """A bounded set of workers, each with at most a few batches in flight."""

    @property
    def size(self) -> int:
        """Workers that are ready now."""
        ...

    @property
    def refused(self) -> Mapping[str, str]:
        """Nodes that take no part any more, and why."""
        ...

    def check_room(self, ranks: int) -> None:
        """Raises EnvironmentFault if no node can hold a case on this many ranks."""
        ...

    def lay_out(self, ranks: int) -> None:
        """Have slots for cases on this many ranks each; nothing may be in flight. Raises like :meth:`check_room`."""
        ...

    def await_first(self) -> None:
        """Return once a worker is ready. Raises EnvironmentFault if none can be started."""
        ...

    def capacity(self) -> int:
        """Batches that can be submitted now without queueing deeper than the window."""
        ...

    def submit(self, token: int, jobs: Sequence[Job]) -> None:
        """Hand a batch to the least busy ready worker; its completion carries `token`."""
        ...

    def wait(self, timeout: float) -> Sequence[Completion]:
        """Completions since the last call, waiting at most `timeout` seconds for the first."""
        ...

    def close(self) -> None:
        """Stop every worker and whatever they started. Batches in flight are dropped."""
        ...
