"""What became dearer between two sweeps. It gates nothing: a slower step is as right as a fast one."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from neuronqa.db.measures import Measure
from neuronqa.domain.outcome import Check

SLOWER: Final = 1.5
"""A step is a regression where it takes so many times as long as before, beside what all steps of both sweeps do."""
LONGER: Final = 1.2
"""The same for compilation."""
MORE: Final = 0.05
"""A share of a run by which more of it runs on the host."""
TYPICAL: Final = 5
"""Cases both sweeps ran, below which nobody can tell a slower machine from slower code."""


class Figure(StrEnum):
    """What is compared, by the check that recorded it."""

    STEP = "step"
    """Seconds of one step, as the machine of the sweep took them."""
    COMPILE = "compile"
    """Seconds to compile; modelled on the simulated device."""
    FALLBACK = "fallback share"


_FIGURES: Final = {Check.RUN: Figure.STEP, Check.COMPILE: Figure.COMPILE, Check.FALLBACK: Figure.FALLBACK}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dearer:
    """One case whose figure is worse."""

    case: str
    family: str
    variant: str
    figure: Figure
    before: float
    after: float

    @property
    def rise(self) -> float:
        """For a share the difference, else the ratio."""
        return self.after - self.before if self.figure is Figure.FALLBACK else self.after / self.before

    def to_json(self) -> dict[str, Any]:
        return {
            "case": self.case,
            "family": self.family,
            "variant": self.variant,
            "figure": self.figure.value,
            "before": self.before,
            "after": self.after,
        }


@dataclass(frozen=True, kw_only=True)
class Performance:
    """Cases both sweeps ran, and those of them that became dearer, the worst of each figure first."""

    compared: int
    machine: float | None
    """How many times as long the typical step took in the second sweep; None where too few tell."""
    dearer: tuple[Dearer, ...]

    def to_json(self, limit: int) -> dict[str, Any]:
        return {
            "compared": self.compared,
            "machine": self.machine,
            "dearer": len(self.dearer),
            "lines": [one.to_json() for one in self.dearer[:limit]],
        }


def compare(before: Iterable[Measure], after: Iterable[Measure]) -> Performance:
    """Put what both ran side by side. Times of steps are measured, so they are held to what the typical step does."""
    known = {(one.case, one.check): one.value for one in before}
    pairs = [
        Dearer(
            case=one.case,
            family=one.family,
            variant=one.variant,
            figure=_FIGURES[one.check],
            before=known[one.case, one.check],
            after=one.value,
        )
        for one in after
        if (one.case, one.check) in known
    ]
    steps = [one.rise for one in pairs if one.figure is Figure.STEP and one.before > 0]
    machine = statistics.median(steps) if len(steps) >= TYPICAL else None
    dearer = [one for one in pairs if _worse(one, machine)]
    order = list(Figure)
    dearer.sort(key=lambda one: (order.index(one.figure), -one.rise, one.case))
    return Performance(compared=len({one.case for one in pairs}), machine=machine, dearer=tuple(dearer))


def _worse(one: Dearer, machine: float | None) -> bool:
    match one.figure:
        case Figure.FALLBACK:
            return one.rise > MORE
        case Figure.STEP:
            return machine is not None and one.before > 0 and one.rise > SLOWER * machine
        case Figure.COMPILE:
            return one.before > 0 and one.rise > LONGER
