"""What the cases of a sweep cost on the device: figures that decide nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, func, select

from neuronqa.db import tables as t
from neuronqa.domain.case import AttemptKind
from neuronqa.domain.outcome import Check, Kind, Standing

_OF: Final = (Check.RUN, Check.COMPILE, Check.FALLBACK)
_ENDED: Final = tuple(
    kind.value for kind in Kind if kind.rules.standing is Standing.PASS or kind.value.startswith("fallback:")
)
_OWN: Final = (AttemptKind.RECORD.value, AttemptKind.ALONE.value, AttemptKind.RETRY.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One figure of one case: seconds a step (run), seconds to compile (compile), or the share of a run that operators
    on the host took (fallback)."""

    case: str
    check: Check
    family: str
    variant: str
    value: float


def of(db: Connection, sweep_id: int) -> list[Measure]:
    """One for each case and check that got far enough: the least where a case ran more than once."""
    rows = db.execute(
        select(
            t.case.c.hash,
            t.result.c.check,
            t.workload.c.family,
            t.case.c.variant,
            func.min(func.coalesce(t.result.c.measure, 0.0)),
        )
        .join(t.attempt, t.attempt.c.case_id == t.case.c.id)
        .join(t.result, t.result.c.attempt_id == t.attempt.c.id)
        .join(t.workload, t.workload.c.id == t.case.c.workload_id)
        .where(
            t.attempt.c.sweep_id == sweep_id,
            t.attempt.c.kind.in_(_OWN),
            t.result.c.check.in_([check.value for check in _OF]),
            t.result.c.kind.in_(_ENDED),
        )
        .group_by(t.case.c.hash, t.result.c.check, t.workload.c.family, t.case.c.variant)
    )
    return [
        Measure(case=case, check=Check(check), family=family, variant=variant, value=value)
        for case, check, family, variant, value in rows
    ]
