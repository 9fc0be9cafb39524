"""What earlier sweeps of the same device executed that a new one has planned, and how taking it over went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, and_, exists, func, select

from neuronqa.db import queries
from neuronqa.db import tables as t
from neuronqa.db.planning import STREAMED, unanswered
from neuronqa.domain.build import BuildVector
from neuronqa.domain.case import AttemptKind, Variant
from neuronqa.domain.outcome import Kind

SWEEPS: Final = 10
"""Earlier sweeps that are looked through, newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """A sweep of the same device, judged on the same terms."""

    id: int
    build: BuildVector


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """An attempt of an earlier sweep at a case that a new one needs."""

    attempt: int
    case: int
    workload: int
    variant: Variant
    kinds: frozenset[Kind]
    ops_complete: bool
    blob: int | None


def earlier(db: Connection, sweep_id: int) -> list[Earlier]:
    """Sweeps before this one whose verdicts mean the same, newest first."""
    this = select(t.sweep.c.device, t.sweep.c.terms).where(t.sweep.c.id == sweep_id).subquery()
    query = (
        select(t.sweep.c.id, t.build.c.vector)
        .join(t.build, t.build.c.id == t.sweep.c.build_id)
        .join(this, and_(this.c.device == t.sweep.c.device, this.c.terms == t.sweep.c.terms))
        .where(t.sweep.c.id != sweep_id)
        .order_by(t.sweep.c.id.desc())
        .limit(SWEEPS)
    )
    return [Earlier(id=row.id, build=BuildVector(**row.vector)) for row in db.execute(query)]


def records_of(db: Connection, sweep_id: int, earlier_id: int) -> Iterator[Executed]:
    """The earlier sweep's records of cases that this one has planned and has nothing of yet."""
    wanted = select(t.sweep_case.c.case_id).where(unanswered(sweep_id), ~_settled(sweep_id, t.sweep_case.c.case_id))
    query = _executed().where(queries.valid(earlier_id, queries.EXECUTED), t.attempt.c.case_id.in_(wanted))
    return map(_read, _streamed(db, query))


def audits_of(db: Connection, sweep_id: int, plan_id: int, earlier_id: int) -> Iterator[Executed]:
    """The earlier sweep's audits of workloads that are in the plan, but that this sweep does not execute."""
    planned = select(t.sweep_case.c.case_id).where(t.sweep_case.c.sweep_id == sweep_id)
    listed = select(t.plan_group.c.workload_id).where(t.plan_group.c.plan_id == plan_id)
    query = _executed().where(
        queries.valid(earlier_id, [AttemptKind.AUDIT.value]),
        t.attempt.c.case_id.not_in(planned),
        t.case.c.workload_id.in_(listed),
        ~_settled(sweep_id, t.attempt.c.case_id),
    )
    return map(_read, _streamed(db, query))


def operators(db: Connection, executed: Executed) -> frozenset[str]:
    """What an attempt executed on the device."""
    return frozenset(op["op"] for op in queries.blob(db, executed.blob).get("ops", ()))


def spared_cases(db: Connection, sweep_id: int) -> int:
    """Cases that a sweep took over instead of executing them."""
    query = select(func.count()).where(t.attempt.c.sweep_id == sweep_id, t.attempt.c.kind == AttemptKind.REUSED.value)
    return int(db.execute(query).scalar_one())


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A case that was drawn to be executed although its verdict could have been carried over."""

    workload: str
    variant: Variant
    agreed: bool


def compared(db: Connection, sweep_id: int) -> list[Compared]:
    """Every drawn case that was executed: did it come to what would have been carried over?"""
    again = t.attempt.alias("again")
    query = (
        select(t.carried.c.source_id, again.c.id, t.workload.c.hash, t.case.c.variant)
        .join(again, and_(again.c.case_id == t.carried.c.case_id, again.c.sweep_id == sweep_id))
        .join(t.case, t.case.c.id == t.carried.c.case_id)
        .join(t.workload, t.workload.c.id == t.case.c.workload_id)
        .where(t.carried.c.sweep_id == sweep_id, t.carried.c.attempt_id.is_(None), again.c.kind.in_(queries.EXECUTED))
        .order_by(again.c.id)
    )
    pairs = list(db.execute(query))
    said = _said(db, [row.source_id for row in pairs] + [row.id for row in pairs])
    return [
        Compared(
            workload=row.hash,
            variant=Variant.parse(row.variant),
            agreed=said.get(row.source_id) == said.get(row.id),
        )
        for row in pairs
    ]


def _said(db: Connection, attempts: Sequence[int]) -> dict[int, dict[str, tuple[str, str]]]:
    """Attempt -> check -> outcome."""
    found: dict[int, dict[str, tuple[str, str]]] = {}
    query = select(t.result).where(t.result.c.attempt_id.in_(attempts))
    for row in db.execute(query):
        found.setdefault(row.attempt_id, {})[row.check] = (row.kind, row.detail)
    return found


def _executed() -> Select[Any]:
    return (
        select(
            t.attempt.c.id,
            t.attempt.c.case_id,
            t.case.c.workload_id,
            t.case.c.variant,
            t.attempt.c.ops_complete,
            t.attempt.c.blob_id,
            func.aggregate_strings(t.result.c.kind, ",").label("kinds"),
        )
        .select_from(t.attempt)
        .join(t.case, t.case.c.id == t.attempt.c.case_id)
        .join(t.result, t.result.c.attempt_id == t.attempt.c.id)
        .group_by(t.attempt.c.id, t.case.c.id)
        .order_by(t.attempt.c.id)
    )


def _read(row: Row[Any]) -> Executed:
    return Executed(
        attempt=row.id,
        case=row.case_id,
        workload=row.workload_id,
        variant=Variant.parse(row.variant),
        kinds=frozenset(Kind(kind) for kind in row.kinds.split(",")),
        ops_complete=row.ops_complete,
        blob=row.blob_id,
    )


def _settled(sweep_id: int, case_id: Any) -> Any:
    """Was this case carried over, or drawn, already?"""
    return exists().where(t.carried.c.sweep_id == sweep_id, t.carried.c.case_id == case_id)


def _streamed(db: Connection, query: Select[Any]) -> Iterator[Row[Any]]:
    yield from db.execute(query, execution_options={"yield_per": STREAMED})
