"""Where a submission runs: a worker's own isolation, made strict, or not at all.

Every child runs below one zygote: no network, a process namespace of its own, a user nobody else is, every file
read-only but its own folder, limits on memory, processor time, files and processes; and a filter on system calls. Where
any of it cannot be had nothing runs, and the verdict is inconclusive.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from neuronqa.domain.job import Job, JobResult
from neuronqa.domain.observation import Exit
from neuronqa.domain.policy import Limits
from neuronqa.errors import EnvironmentFault
from neuronqa.worker import actor, folders
from neuronqa.worker.confine import Confinement

CHILD: Final = "neuronqa.fixqueue.child"
ENFORCED: Final = "enforced.json"
LOOK_LIMITS: Final = Limits(deadline_s=30, memory_mb=512, probes=0)


class Role(StrEnum):
    """The roles beside those of a case."""

    LOOK = "look"
    """Says how far it is shut in."""
    EXPECT = "expect"
    """Draws calls and computes what is expected of them. Loads no device."""
    APPLY = "apply"
    """Loads a device with the submission and makes the calls."""


class NotEnforced(EnvironmentFault):
    """This machine cannot shut a submission in. Says what is missing."""


class Sandbox:
    """One warm zygote for all that verification runs. To be used on the main thread, as a context manager."""

    def __init__(self, device: str = "neuron") -> None:
        outfit = actor.outfit(device)
        settings = replace(
            outfit,
            entry=f"{CHILD}.entry:run",
            preload=(*outfit.preload, f"{CHILD}.preload", f"{CHILD}.entry"),
            confinement=Confinement.SEALED,
        )
        self._actor = actor.CaseActor(device, settings)
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
        """Raises NotEnforced."""
        try:
            self._actor.ready()
            self._look()
        except EnvironmentFault as fault:
            self._actor.close()
            raise NotEnforced(fault.what, where=fault.where, hint=fault.hint) from fault
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._actor.close()

    def cases(self, job: Job) -> JobResult:
        """Run cases as a sweep does, in children that are shut in further."""
        return self._actor.run([job])[0]

    @contextmanager
    def played(self, role: Role, request: Mapping[str, Any], limits: Limits) -> Iterator[tuple[Exit, Path]]:
        """Play a role; how it ended, and the folder of what it left: plain files, gone afterwards."""
        out = self.place(role.value)
        try:
            yield self._actor.play(role.value, {**request, "out": str(out)}, limits), out
        finally:
            folders.remove(out)

    def place(self, name: str) -> Path:
        """A path for a folder that does not exist yet, where children can read it."""
        return self._actor.folder / f"{name}-{next(self._numbers)}"

    def _look(self) -> None:
        with self.played(Role.LOOK, {}, LOOK_LIMITS) as (left, out):
            if not left.done:
                raise NotEnforced(left.fault or left.stderr_tail[-200:] or "the look around did not end")
            missing = lacking(json.loads((out / ENFORCED).read_text("utf-8")))
        if missing:
            raise NotEnforced(", ".join(missing))


def lacking(state: Mapping[str, Any]) -> list[str]:
    """What a child that describes itself so is not shut off from."""
    own_user = state["uid"] not in (0, os.geteuid()) or state["user_space"] != str(
        Path("/proc/self/ns/user").readlink()
    )
    held = {
        "a user of its own": own_user and not state["may_write"],
        "a network namespace": state["network_space"] != str(Path("/proc/self/ns/net").readlink()),
        "a filter on system calls": state["filtered"] and state["seccomp"] == "2",
        "no new privileges": state["no_new_privileges"] == "1",
        "resource limits": all(limit != resource.RLIM_INFINITY for limit in state["limits"]),
    }
    return [what for what, there in held.items() if not there]
