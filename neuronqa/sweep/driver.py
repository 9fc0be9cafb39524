"""The loop that hands out jobs, writes what comes back, and knows when to stop. It is the database's only writer."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Protocol

from neuronqa.db.patience import patiently
from neuronqa.db.rows import AttemptRecord
from neuronqa.db.store import Store
from neuronqa.domain.case import AttemptKind
from neuronqa.domain.job import JobResult
from neuronqa.domain.outcome import AtFault, Standing
from neuronqa.sweep import spans
from neuronqa.sweep.controls import Control
from neuronqa.sweep.fleet import Completion, Fleet
from neuronqa.sweep.record import lost_records, records
from neuronqa.sweep.schedule import VOIDS, Assignment, Queue

FLUSH_ROWS: Final = 1000
FLUSH_S: Final = 1.0
PACE_AFTER_S: Final = 10.0
PACE_LIMIT: Final = 5.0
GRACE_S: Final = 20.0
"""How long jobs in flight may run past the budget before they are dropped and count as not run."""


@dataclass(kw_only=True)
class Progress:
    """What a display needs, updated as results come in."""

    planned: int
    """Cases."""
    done: int = 0
    lost: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    """Workloads by the stage of their first failing outcome."""
    workers: int = 0
    most_workers: int = 0
    started: float = field(default_factory=time.monotonic)
    budget_s: float | None = None
    draining: str = ""
    """Why no more work is handed out, once that is so."""
    control_misses: int = 0


class Pace:
    """How long jobs really take beside what was expected: a machine may be busy, and a guess wrong."""

    def __init__(self) -> None:
        self._expected = self._took = 0.0

    def note(self, assignment: Assignment, result: JobResult) -> None:
        self._expected += assignment.expected_s
        self._took += sum(one.exit.wall_s for one in result.references)
        self._took += sum(one.exit.wall_s for one in result.attempts)

    @property
    def factor(self) -> float:
        """Seconds a job takes for each that is expected; 1 until enough was seen."""
        if self._expected < PACE_AFTER_S:
            return 1.0
        return min(max(self._took / self._expected, 1 / PACE_LIMIT), PACE_LIMIT)


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
        self._flying: dict[int, Sequence[Assignment]] = {}
        self._flying_s = 0.0
        """Expected of all that is in flight, which may be a hundred thousand jobs: nobody adds them up again."""
        self._flying_alone = 0
        self._pace = Pace()
        self._tracer = spans.tracer()
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
                if not self._flying and (self._stop or self._spent or queue.empty):
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
            batch = queue.batch(self._fleet.size, self._room_s())
            if not batch:
                self._spent = not queue.empty
                return
            self._token += 1
            self._launch(batch)
            self._fleet.submit(self._token, [assignment.job for assignment in batch])

    def _launch(self, batch: Sequence[Assignment]) -> None:
        self._flying[self._token] = batch
        self._flying_s += sum(one.expected_s for one in batch)
        self._flying_alone += sum(one.alone for one in batch)

    def _land(self, token: int) -> Sequence[Assignment]:
        batch = self._flying.pop(token, ())
        self._flying_s -= sum(one.expected_s for one in batch)
        self._flying_alone -= sum(one.alone for one in batch)
        return batch

    def _must_wait(self, queue: Queue) -> bool:
        """A job that must be alone starts when nothing else runs, and nothing else starts until it is done."""
        return self._flying_alone > 0 or (bool(self._flying) and queue.must_be_alone)

    def _room_s(self) -> float:
        """The longest a job that is handed out now may be expected to take, and still end in time."""
        if self._deadline is None:
            return math.inf
        ahead = self._flying_s / max(1, self._fleet.size)
        return (self._deadline - time.monotonic()) / self._pace.factor - 0.5 * ahead

    def _notice_limits(self) -> None:
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self._spent = True
        limit = self._deal.max_failures
        if limit is not None and sum(self.progress.failures.values()) >= limit:
            self.stop("max-failures")

    def _take(self, completion: Completion, queue: Queue) -> None:
        batch = self._land(completion.token)
        results: Sequence[JobResult | None] = completion.results or [None] * len(batch)
        for assignment, result in zip(batch, results, strict=bool(batch)):
            if result is None or result.lost:
                self._mourn(assignment, result.lost if result else completion.lost, queue)
                continue
            self._pace.note(assignment, result)
            self._keep(assignment, records(assignment, result, self._deal.device))

    def _mourn(self, assignment: Assignment, why: str, queue: Queue) -> None:
        """A lost job is void; after two voids it is `infra:lost`."""
        self.progress.lost += 1
        if assignment.voids < VOIDS:
            queue.put_back(assignment.voided())
        else:
            self._keep(assignment, lost_records(assignment, why, self._deal.device))

    def _keep(self, assignment: Assignment, found: list[AttemptRecord]) -> None:
        self._pending += [self._judged(record) for record in found]
        self._count(assignment, found)

    def _judged(self, record: AttemptRecord) -> AttemptRecord:
        control = self._deal.key.get(record.probe_of or record.ticket)
        if control is None or record.kind is AttemptKind.PROBE:
            return record
        verdict = control.judge(record.findings)
        self.progress.control_misses += not verdict.caught
        return replace(record, control=verdict)

    def _count(self, assignment: Assignment, found: list[AttemptRecord]) -> None:
        counting = [record for record in found if record.kind.counts]
        self.progress.done += sum(kind is AttemptKind.RECORD for kind in assignment.kinds.values())
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
            for token in list(self._flying):
                self._land(token)

    def _flush(self, *, force: bool = False) -> None:
        rows = sum(len(record.findings) for record in self._pending)
        if not self._pending or not (force or rows >= FLUSH_ROWS or time.monotonic() - self._flushed >= FLUSH_S):
            return
        patiently(partial(self._store.write, self._deal.sweep_id, self._pending))
        if self._tracer is not None:
            spans.emit(self._tracer, self._pending)
        self._pending = []
        self._flushed = time.monotonic()

    def _refresh(self) -> None:
        self.progress.workers = self._fleet.size
        self.progress.most_workers = max(self.progress.most_workers, self._fleet.size)
        self.progress.draining = self._stop or ("budget" if self._spent else "")
        self._display.show(self.progress)
