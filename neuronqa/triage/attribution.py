"""From failing outcomes to causes: what failed by itself, and what only because something before it did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from neuronqa.db.occurrences import Occurrence
from neuronqa.domain.case import Dtype, Mode
from neuronqa.domain.outcome import Check, Kind, Stage
from neuronqa.triage.keys import VAGUE, Cause

TELLING = VAGUE


@dataclass(frozen=True, slots=True)
class Failure:
    """A failing outcome and the cause it is put down to; `symptom`: not its own, but that of what failed before it."""

    occurrence: Occurrence
    cause: Cause
    symptom: bool

    @property
    def site(self) -> Mapping[str, str]:
        """Where it was seen: what a cluster may be split by."""
        variant = self.occurrence.variant
        return {
            "family": self.occurrence.family,
            "workload": self.occurrence.workload,
            "mode": variant.mode.value,
            "dtype": variant.dtype.value,
            "phase": variant.phase.value,
            "check": self.occurrence.check.value,
            "outcome": str(self.occurrence.outcome),
        }


SITES = ("family", "workload", "mode", "dtype", "phase", "check", "outcome")


def attribute(occurrences: Iterable[Occurrence]) -> Iterator[Failure]:
    """Put every occurrence down to a cause. They must come a workload at a time, and in it a case at a time."""
    for _, of_workload in groupby(occurrences, key=lambda one: one.workload_id):
        yield from _workload(list(of_workload))


def _workload(found: Sequence[Occurrence]) -> Iterator[Failure]:
    causes = {one: Cause(one.check, one.outcome, one.message) for one in found}
    eager: dict[tuple[Dtype, str], Cause] = {}
    for one, cause in causes.items():
        if one.variant.mode is Mode.EAGER and one.check is Check.PARITY and cause.operator:
            eager.setdefault((one.variant.dtype, _wrong(cause)), cause)
    for _, of_case in groupby(found, key=lambda one: one.case_id):
        case = list(of_case)
        parity = next((causes[one] for one in case if one.outcome.kind.stage is Stage.PARITY), None)
        for one in case:
            own = causes[one]
            behind = _behind(one, own, parity, eager)
            yield Failure(one, behind or own, symptom=behind is not None)


def _behind(
    one: Occurrence, own: Cause, parity: Cause | None, eager: Mapping[tuple[Dtype, str], Cause]
) -> Cause | None:
    """The cause this failure only follows from; None where it stands for itself."""
    if own.operator:
        same = parity is not None and own.outcome.kind.stage is Stage.TRAIN and own.kernel == parity.kernel
        return parity if same and parity is not own else None
    if own.outcome.kind.stage is Stage.TRAIN and parity is not None:
        blamed = parity if parity.operator else eager.get((one.variant.dtype, _wrong(parity)))
        return blamed or parity
    if own.outcome.kind.stage is Stage.PARITY and one.variant.mode is Mode.COMPILE:
        return eager.get((one.variant.dtype, _wrong(own)))
    return None


def _wrong(cause: Cause) -> str:
    """Wrong numbers of any manner are alike; NaN and Inf too; a wrong shape or dtype is its own kind."""
    match cause.outcome.kind:
        case Kind.PARITY_NAN | Kind.PARITY_INF:
            return "not finite"
        case Kind.PARITY_ZERO | Kind.PARITY_SCALE | Kind.PARITY_SIGN | Kind.PARITY_OFFSET | Kind.PARITY_SCATTER:
            return "wrong numbers"
        case _:
            return str(cause.outcome.kind.value)
