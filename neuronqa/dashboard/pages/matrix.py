"""Checks by variant: everything one workload answered in a sweep, at a glance."""

from __future__ import annotations

from dataclasses import dataclass

from neuronqa.dashboard.view import Scope
from neuronqa.db.browse import workloads
from neuronqa.domain.case import AttemptKind
from neuronqa.domain.outcome import Check, Kind, Outcome


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One check of one attempt."""

    attempt: int
    outcome: Outcome


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """Rows are checks, columns variants; only what counts."""

    variants: tuple[str, ...]
    rows: tuple[tuple[Check, tuple[Cell | None, ...]], ...]


def of_workload(scope: Scope, hash_: str) -> Matrix:
    """The answers that count for a workload; an empty matrix where it did not run."""
    if not hash_:
        return Matrix(variants=(), rows=())
    made = workloads.attempts(scope.db, scope.sweep.id, workloads.workload(scope.db, hash_).id)
    counting = {one.variant: one for one in made if one.kind == AttemptKind.RECORD.value}
    counting |= {one.variant: one for one in made if one.kind == AttemptKind.ALONE.value}
    variants = tuple(sorted(counting))
    found = workloads.results(scope.db, [one.id for one in counting.values()])
    answers = {
        (variant, one.check): Cell(attempt=counting[variant].id, outcome=Outcome(Kind(one.kind), one.detail))
        for variant in variants
        for one in found[counting[variant].id]
    }
    rows = [(check, tuple(answers.get((variant, check.value)) for variant in variants)) for check in Check]
    return Matrix(variants=variants, rows=tuple((check, cells) for check, cells in rows if any(cells)))
