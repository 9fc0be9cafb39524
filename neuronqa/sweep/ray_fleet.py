"""The fleet on Ray: one actor per slot, a bounded window of calls, replacements for actors that die."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import ray
from ray.exceptions import GetTimeoutError, RayError

from neuronqa.domain.job import Job, JobResult
from neuronqa.errors import EnvironmentFault
from neuronqa.sweep.fleet import Completion
from neuronqa.worker.actor import CaseActor

WINDOW: Final = 2
"""Batches in flight per actor: one running, one waiting, so that an actor never idles between them."""
START_S: Final = 180.0
"""A zygote imports torch and transformers before its actor is ready."""
SLACK_S: Final = 120.0
MOURNING: Final = 5
"""Actors that may die before they were ever ready, in a row, before the fleet is given up."""


@dataclass(eq=False)
class _Slot:
    """One actor and what it has in hand."""

    handle: Any
    ready: bool = False
    calls: dict[Any, int] = field(default_factory=dict)
    deadlines: dict[Any, float] = field(default_factory=dict)


class RayFleet:
    """A :class:`~neuronqa.sweep.fleet.Fleet` of `workers` Ray actors on the cluster `ray.init` connected to."""

    def __init__(self, workers: int, options: dict[str, Any], settings: dict[str, Any]) -> None:
        self._make = ray.remote(max_restarts=0, max_task_retries=0, **options)(CaseActor)
        self._settings = settings
        self._births: dict[Any, _Slot] = {}
        self._slots: list[_Slot] = []
        self._stillborn = 0
        self._ended: list[Completion] = []
        for _ in range(workers):
            self._spawn()

    @property
    def size(self) -> int:
        return sum(slot.ready for slot in self._slots)

    def await_first(self) -> None:
        while not self.size:
            self._ended += self.wait(timeout=0.5)

    def capacity(self) -> int:
        return sum(WINDOW - len(slot.calls) for slot in self._slots if slot.ready)

    def submit(self, token: int, jobs: Sequence[Job]) -> None:
        slot = min((slot for slot in self._slots if slot.ready), key=lambda slot: len(slot.calls))
        before = max(slot.deadlines.values(), default=time.monotonic())
        call = slot.handle.run.remote(list(jobs))
        slot.calls[call] = token
        slot.deadlines[call] = before + patience(jobs)

    def wait(self, timeout: float) -> Sequence[Completion]:
        pending = [*self._births, *(call for slot in self._slots for call in slot.calls)]
        if pending and not self._ended:
            done, _ = ray.wait(pending, num_returns=1, timeout=timeout)
            more, _ = ray.wait(pending, num_returns=len(pending), timeout=0) if done else ([], [])
            for call in more or done:
                self._finish(call)
        self._kill_overdue()
        out, self._ended = self._ended, []
        return out

    def close(self) -> None:
        for slot in self._slots:
            with suppress(RayError, GetTimeoutError):
                ray.get(slot.handle.close.remote(), timeout=5)
            ray.kill(slot.handle)
        self._slots.clear()
        self._births.clear()

    def _spawn(self) -> None:
        slot = _Slot(self._make.remote(**self._settings))
        birth = slot.handle.ready.remote()
        slot.deadlines[birth] = time.monotonic() + START_S
        self._slots.append(slot)
        self._births[birth] = slot

    def _finish(self, call: Any) -> None:
        if call in self._births:
            self._attend_birth(call)
            return
        slot = next((slot for slot in self._slots if call in slot.calls), None)
        if slot is None:  # Its actor died with more than one call, and the first told of them all.
            return
        try:
            results: list[JobResult] = ray.get(call)
        except RayError as error:
            self._bury(slot, _reason(error))
            return
        del slot.deadlines[call]
        self._ended.append(Completion(token=slot.calls.pop(call), results=results))

    def _attend_birth(self, birth: Any) -> None:
        slot = self._births.pop(birth)
        slot.deadlines.pop(birth, None)
        try:
            ray.get(birth)
        except RayError as error:
            self._mourn(_reason(error))
            self._bury(slot, "")
            return
        self._stillborn = 0
        slot.ready = True

    def _mourn(self, why: str) -> None:
        """An actor never became ready. Raises EnvironmentFault once too many in a row did not."""
        self._stillborn += 1
        if self._stillborn >= MOURNING:
            raise EnvironmentFault(f"workers do not start: {why}", hint="run `neuronqa doctor`")

    def _bury(self, slot: _Slot, why: str) -> None:
        """An actor is gone with all it had in hand; another takes its place."""
        self._slots.remove(slot)
        self._ended += [Completion(token=token, results=None, lost=why) for token in slot.calls.values()]
        ray.kill(slot.handle)
        self._spawn()

    def _kill_overdue(self) -> None:
        now = time.monotonic()
        for slot in list(self._slots):
            if all(deadline >= now for deadline in slot.deadlines.values()):
                continue
            if not slot.ready:
                self._births = {birth: other for birth, other in self._births.items() if other is not slot}
                self._mourn("the worker did not start in time")
            self._bury(slot, "the worker did not answer in time")


def _reason(error: RayError) -> str:
    """What happened to an actor in one line; an exception it raised by its own name."""
    cause = getattr(error, "cause", None) or error
    said = str(cause).strip().splitlines()
    return f"{type(cause).__name__}: {said[0][:160]}" if said else type(cause).__name__


def patience(jobs: Sequence[Job]) -> float:
    """Seconds after which a worker that has not answered is given up.

    That is what the longest job may take (every child's deadline, and probes), and slack for the others: should they
    all take so long, the batch is lost, and each is run again by itself.
    """
    return max(job.limits.deadline_s * (2 * len(job.tickets) + 1 + job.limits.probes) for job in jobs) + SLACK_S
