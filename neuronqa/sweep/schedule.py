"""In which order workloads run, and which come next: value per second first, controls and audits in between."""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from neuronqa.db.planning import Candidate
from neuronqa.domain.case import AttemptKind, Mode, Variant
from neuronqa.domain.job import Job

REFERENCE_S: Final = 0.8
"""CPU seconds to build a tiny model and make its reference, before anything was measured."""
EAGER_S: Final = 0.8
COMPILE_S: Final = 5.0
VOIDS: Final = 2
"""How often a job that its worker lost is tried again before it is `infra:lost`."""
BATCH_S: Final = 7.5
"""Seconds of work a worker is handed at once: long beside the cost of handing out, short beside what a loss costs."""
BATCH_JOBS: Final = 50
AHEAD: Final = 256
"""Main jobs held before they are due."""


@dataclass(frozen=True, kw_only=True)
class CostModel:
    """Expected CPU seconds per (family, variant), learnt from past attempts; constants until then."""

    by_family: Mapping[tuple[str, Variant], float] = field(default_factory=dict)
    by_variant: Mapping[Variant, float] = field(default_factory=dict)

    def expect(self, family: str, variants: Iterable[Variant]) -> float:
        """Seconds one job of this family with these variants should take."""
        return REFERENCE_S + sum(self._one(family, variant) for variant in variants)

    def _one(self, family: str, variant: Variant) -> float:
        guess = COMPILE_S if variant.mode is Mode.COMPILE else EAGER_S
        return self.by_family.get((family, variant), self.by_variant.get(variant, guess))


def by_value(candidates: Iterable[Candidate], variants: Sequence[Variant], cost: CostModel) -> array[int]:
    """Ids of workloads, those first that settle most entries and downloads per second; equals stay as they come."""
    ids, entries, downloads, seconds = array("q"), array("q"), array("q"), array("d")
    for one in candidates:
        ids.append(one.workload_id)
        entries.append(one.entries)
        downloads.append(one.downloads)
        seconds.append(cost.expect(one.family, variants))
    all_entries, all_downloads = sum(entries) or 1, sum(downloads) or 1

    def merit(place: int) -> float:
        return (entries[place] / all_entries + downloads[place] / all_downloads) / seconds[place]

    return array("q", (ids[place] for place in sorted(range(len(ids)), key=merit, reverse=True)))


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """A job with what only the driver knows of it: the kind of each ticket, and how long it should take."""

    job: Job
    kinds: Mapping[str, AttemptKind]
    expected_s: float
    voids: int = 0

    @property
    def alone(self) -> bool:
        """Must nothing else run beside it? A solo run is meant to; a job on its last chance may have no neighbours
        that could be to blame, or suffer."""
        return self.voids >= VOIDS or AttemptKind.ALONE in self.kinds.values()

    def voided(self) -> tuple[Assignment, ...]:
        """The same work again after its worker was lost with it.

        On its last chance ticket by ticket: which of them ends workers is not known, and the others need not share it.
        """
        again = replace(self, voids=self.voids + 1)
        if again.voids < VOIDS:
            return (again,)
        return tuple(
            replace(
                again,
                job=replace(self.job, tickets=(ticket,)),
                kinds={ticket.id: self.kinds[ticket.id]},
                expected_s=self.expected_s / len(self.job.tickets),
            )
            for ticket in self.job.tickets
        )


class Queue:
    """What is still to be handed out. Extras (controls) are dealt between the main jobs at a fixed stride.

    Main jobs are taken from their source as they come due. Once it has no more, and unless value decides the order to
    the end (`by_value`), the last ones go longest first, so that no worker is still busy long after the others.
    """

    def __init__(
        self, main: Iterable[Assignment], extras: Iterable[Assignment] = (), stride: int = 1, *, by_value: bool = False
    ) -> None:
        self._source = iter(main)
        self._main: deque[Assignment] = deque()
        self._extras = deque(extras)
        self._again: deque[Assignment] = deque()
        self._stride = max(1, stride)
        self._by_value = by_value
        self._dealt = 0
        self._ending = False
        self._read_ahead()

    @property
    def empty(self) -> bool:
        return not (self._main or self._extras or self._again)

    @property
    def must_be_alone(self) -> bool:
        """Must nothing else run beside the next job?"""
        following = next((queue for queue in self._turns() if queue), None)
        return following is not None and following[0].alone

    def put_back(self, assignments: Iterable[Assignment]) -> None:
        """Lost jobs go before everything else."""
        self._again.extend(assignments)

    def batch(self, workers: int, room_s: float = math.inf) -> list[Assignment]:
        """The next jobs for one worker, together about `BATCH_S`; empty if nothing is left that takes at most `room_s`.

        Near the end a batch is smaller, so that all of `workers` have a share. A lost job, and one that must be alone,
        is handed out by itself.
        """
        size_s = min(BATCH_S, room_s, self._share_s(workers))
        batch: list[Assignment] = []
        while len(batch) < BATCH_JOBS and (following := self._following(room_s)):
            one = following[0]
            apart = one.voids > 0 or one.alone
            if batch and (apart or one.expected_s > size_s):
                break
            batch.append(self._take(following))
            size_s -= one.expected_s
            if apart:
                break
        return batch

    def _share_s(self, workers: int) -> float:
        """Half of what each worker would get of the rest; no bound before the end is in sight."""
        if not self._ending:
            return math.inf
        return sum(one.expected_s for one in (*self._main, *self._extras)) / (2 * max(1, workers))

    def _turns(self) -> Iterator[deque[Assignment]]:
        """Whose turn it is: lost jobs first, then an extra if one is due, then main jobs, then extras that are left."""
        yield self._again
        if self._dealt % self._stride == 0:
            yield self._extras
        yield self._main
        yield self._extras

    def _following(self, room_s: float) -> deque[Assignment] | None:
        """The queue whose first job is next, of those that take at most `room_s`."""
        for queue in self._turns():
            if queue and (queue[0].expected_s <= room_s or (queue is self._main and self._bring_forward(room_s))):
                return queue
        return None

    def _take(self, following: deque[Assignment]) -> Assignment:
        taken = following.popleft()
        self._dealt += following is not self._again
        self._read_ahead()
        return taken

    def _bring_forward(self, room_s: float) -> bool:
        """Move the first main job that takes at most `room_s` to the front."""
        place = next((place for place, one in enumerate(self._main) if one.expected_s <= room_s), None)
        if place is None:
            return False
        fitting = self._main[place]
        del self._main[place]
        self._main.appendleft(fitting)
        return True

    def _read_ahead(self) -> None:
        if self._ending or len(self._main) > AHEAD // 2:
            return
        wanted = AHEAD - len(self._main)
        fresh = list(islice(self._source, wanted))
        self._main.extend(fresh)
        self._ending = len(fresh) < wanted
        if self._ending and not self._by_value:
            self._main = deque(sorted(self._main, key=lambda one: one.expected_s, reverse=True))
