"""The loop that hands out jobs, writes what comes back, and knows when to stop. It is the database's only writer."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from neuronqa.db.rows import AttemptRecord
from neuronqa.db.store import Store
from neuronqa.domain.case import AttemptKind
from neuronqa.domain.outcome import AtFault, Standing
from neuronqa.sweep.controls import Control
from neuronqa.sweep.fleet import Completion, Fleet
from neuronqa.sweep.record import lost_records, records
from neuronqa.sweep.schedule import VOIDS, Assignment, Queue

FLUSH_ROWS: Final = 1000
FLUSH_S: Final = 1.0
GRACE_S: Final = 20.0
"""How long jobs in flight may run past the budget before they are dropped and count as not run."""


@dataclass(kw_only=True)
class Progress:
    """What a display needs, updated as results come in."""

    planned: int
    done: int = 0
    lost: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    """Workloads by the stage of their first failing outcome."""
    workers: int = 0
    started: float = field(default_factory=time.monotonic)
    budget_s: float | None = None
    draining: str = ""
    """Why no more work is handed out, once that is so."""
    control_misses: int = 0


class Display(Protocol):
    """Shows progress; called several times a second."""

    def show(self, progress: Progress) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Deal:
    """What one leg of a sweep works with."""

    sweep_id: int
    device: str
    key: Mapping[str, Control]
    """Ticket -> control: the key nobody else holds."""
    max_failures: int | None = None


class Driver:
    """Feeds a fleet from a queue and writes to a store until the queue, the budget or the person says stop."""

    def __init__(self, fleet: Fleet, store: Store, deal: Deal, progress: Progress, display: Display) -> None:
        self._fleet = fleet
        self._store = store
        self._deal = deal
        self.progress = progress
        self._display = display
        self._flying: dict[int, Assignment] = {}
        self._token = 0
        self._pending: list[AttemptRecord] = []
        self._flushed = time.monotonic()
        self._stop = ""
        self._deadline: float | None = None
        self._spent = False

    def stop(self, why: str) -> None:
        """Hand out nothing more; what is in flight is kept. Safe to call from a signal handler."""
        self._stop = self._stop or why

    @property
    def stopped(self) -> str:
        return self._stop

    def run(self, queue: Queue, deadline: float | None) -> None:
        """Work the queue off: nothing new starts that would not end before `deadline` (monotonic time).

        Returns when nothing is left, time is up, or a stop has drained; what was not started stays not run.
        """
        self._deadline, self._spent = deadline, False
        try:
            while True:
                self._feed(queue)
                if not self._flying and (self._stop or self._spent or not len(queue)):
                    break
                for completion in self._fleet.wait(timeout=0.2):
                    self._take(completion, queue)
                self._drop_overdue()
                self._flush()
                self._refresh()
        finally:
            self._flush(force=True)
            self._refresh()

    def _feed(self, queue: Queue) -> None:
        self._notice_limits()
        while not self._stop and not self._spent and self._fleet.capacity() > 0 and not self._must_wait(queue):
            assignment = queue.next()
            if assignment is None:
                return
            if not self._fits(assignment):
                self._spent = True
                return
            self._token += 1
            self._flying[self._token] = assignment
            self._fleet.submit(self._token, assignment.job)

    def _must_wait(self, queue: Queue) -> bool:
        """A job on its last chance starts when nothing else runs, and nothing else starts until it is done."""
        return any(a.last_chance for a in self._flying.values()) or (queue.last_chance and bool(self._flying))

    def _fits(self, assignment: Assignment) -> bool:
        """Would the job end in time, if it and all that waits before it takes as long as expected?"""
        if self._deadline is None:
            return True
        ahead = sum(a.expected_s for a in self._flying.values()) / max(1, self._fleet.size)
        return time.monotonic() + 0.5 * ahead + assignment.expected_s <= self._deadline

    def _notice_limits(self) -> None:
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self._spent = True
        limit = self._deal.max_failures
        if limit is not None and sum(self.progress.failures.values()) >= limit:
            self.stop("max-failures")

    def _take(self, completion: Completion, queue: Queue) -> None:
        assignment = self._flying.pop(completion.token, None)
        if assignment is None:
            return
        if completion.result is None:
            self._mourn(assignment, completion.lost, queue)
            return
        found = records(assignment, completion.result, self._deal.device)
        self._pending += [self._judged(record) for record in found]
        self._count(found)

    def _mourn(self, assignment: Assignment, why: str, queue: Queue) -> None:
        """A lost job is void; after two voids it is `infra:lost`."""
        self.progress.lost += 1
        if assignment.voids < VOIDS:
            queue.put_back(assignment.voided)
            return
        found = lost_records(assignment, why, self._deal.device)
        self._pending += [self._judged(record) for record in found]
        self._count(found)

    def _judged(self, record: AttemptRecord) -> AttemptRecord:
        control = self._deal.key.get(record.probe_of or record.ticket)
        if control is None or record.kind is AttemptKind.PROBE:
            return record
        verdict = control.judge(record.findings)
        self.progress.control_misses += not verdict.caught
        return replace(record, control=verdict)

    def _count(self, found: list[AttemptRecord]) -> None:
        counting = [record for record in found if record.kind.counts]
        if not counting:
            return
        self.progress.done += 1
        failing = [
            finding.outcome
            for record in counting
            for finding in record.findings
            if finding.outcome.standing is Standing.FAIL and finding.outcome.rules.at_fault is not AtFault.NOBODY
        ]
        if failing:
            self.progress.failures[failing[0].kind.stage.value] += 1

    def _drop_overdue(self) -> None:
        if self._deadline is not None and time.monotonic() > self._deadline + GRACE_S:
            self._flying.clear()

    def _flush(self, *, force: bool = False) -> None:
        rows = sum(len(record.findings) for record in self._pending)
        if not self._pending or not (force or rows >= FLUSH_ROWS or time.monotonic() - self._flushed >= FLUSH_S):
            return
        self._store.write(self._deal.sweep_id, self._pending)
        self._pending = []
        self._flushed = time.monotonic()

    def _refresh(self) -> None:
        self.progress.workers = self._fleet.size
        self.progress.draining = self._stop or ("budget" if self._spent else "")
        self._display.show(self.progress)
