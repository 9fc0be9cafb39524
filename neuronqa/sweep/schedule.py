"""In which order workloads run, and which come next: value per second first, controls and audits in between."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from neuronqa.domain.case import AttemptKind, Mode, Variant
from neuronqa.domain.job import Job
from neuronqa.domain.plan import PlannedWorkload
from neuronqa.domain.workload import Workload

REFERENCE_S: Final = 0.8
"""CPU seconds to build a tiny model and make its reference, before anything was measured."""
EAGER_S: Final = 0.8
COMPILE_S: Final = 5.0
VOIDS: Final = 2
"""How often a job that its worker lost is tried again before it is `infra:lost`."""


@dataclass(frozen=True, kw_only=True)
class CostModel:
    """Expected CPU seconds per (family, variant), learnt from past attempts; constants until then."""

    by_family: Mapping[tuple[str, Variant], float] = field(default_factory=dict)
    by_variant: Mapping[Variant, float] = field(default_factory=dict)

    def expect(self, workload: Workload, variants: Iterable[Variant]) -> float:
        """Seconds one job with these variants should take."""
        return REFERENCE_S + sum(self._one(workload.spec.family, variant) for variant in variants)

    def _one(self, family: str, variant: Variant) -> float:
        guess = COMPILE_S if variant.mode is Mode.COMPILE else EAGER_S
        return self.by_family.get((family, variant), self.by_variant.get(variant, guess))


def by_value(planned: Sequence[PlannedWorkload], variants: Sequence[Variant], cost: CostModel) -> list[PlannedWorkload]:
    """Most entries and downloads settled per second first; ties by workload hash, so that the order is reproducible."""
    entries = sum(p.entries for p in planned) or 1
    downloads = sum(p.downloads for p in planned) or 1

    def merit(p: PlannedWorkload) -> tuple[float, str]:
        value = p.entries / entries + p.downloads / downloads
        return (-value / cost.expect(p.workload, variants), p.workload.hash)

    return sorted(planned, key=merit)


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """A job with what only the driver knows of it: the kind of each ticket, and how long it should take."""

    job: Job
    kinds: Mapping[str, AttemptKind]
    expected_s: float
    voids: int = 0

    @property
    def voided(self) -> Assignment:
        """The same work again after its worker was lost with it."""
        return replace(self, voids=self.voids + 1)

    @property
    def last_chance(self) -> bool:
        """Lost so often that once more is the end: then it runs alone, so that no neighbour can be to blame."""
        return self.voids >= VOIDS


class Queue:
    """What is still to be handed out. Extras (controls, audits) are dealt between the main jobs at a fixed stride."""

    def __init__(self, main: Iterable[Assignment], extras: Iterable[Assignment], stride: int) -> None:
        self._main = deque(main)
        self._extras = deque(extras)
        self._again: deque[Assignment] = deque()
        self._stride = max(1, stride)
        self._dealt = 0

    def __len__(self) -> int:
        return len(self._main) + len(self._extras) + len(self._again)

    @property
    def last_chance(self) -> bool:
        """Must the next job run alone?"""
        return bool(self._again) and self._again[0].last_chance

    def put_back(self, assignment: Assignment) -> None:
        """A lost job goes before everything else."""
        self._again.append(assignment)

    def next(self) -> Assignment | None:
        """The next job: a lost one, else an extra where one is due, else a main one."""
        if self._again:
            return self._again.popleft()
        if self._extras and (self._dealt % self._stride == 0 or not self._main):
            self._dealt += 1
            return self._extras.popleft()
        if self._main:
            self._dealt += 1
            return self._main.popleft()
        return None
