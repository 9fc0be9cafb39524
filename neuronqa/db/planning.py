"""What a driver asks before, between and after its jobs, in parts: a plan may hold a million cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, and_, exists, func, select

from neuronqa.db import queries
from neuronqa.db import tables as t
from neuronqa.db.queries import COUNTING
from neuronqa.domain.case import Variant
from neuronqa.domain.plan import PlannedGroup

STREAMED: Final = 2000
"""Rows fetched at a time."""
CHUNK: Final = 500
"""Names in one condition."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """The workload that is executed for a kernel key, and what its verdict would settle."""

    workload_id: int
    family: str
    entries: int
    """Of the whole kernel key."""
    downloads: int


def candidates(db: Connection, plan_id: int) -> Iterator[Candidate]:
    """One workload per kernel key: the one that stands for most entries, then most downloads, then by hash.

    In the order of their hashes, which is the same in every database.
    """
    group, workload = t.plan_group.c, t.workload.c
    best = (group.entries.desc(), group.downloads.desc(), workload.hash.desc())
    ranked = (
        select(
            group.workload_id,
            workload.hash,
            workload.family,
            func.sum(group.entries).over(partition_by=group.kernel_key).label("entries"),
            func.sum(group.downloads).over(partition_by=group.kernel_key).label("downloads"),
            func.row_number().over(partition_by=group.kernel_key, order_by=best).label("place"),
        )
        .join(t.workload, workload.id == group.workload_id)
        .where(group.plan_id == plan_id)
        .subquery()
    )
    for row in _streamed(db, select(ranked).where(ranked.c.place == 1).order_by(ranked.c.hash)):
        yield Candidate(row.workload_id, row.family, int(row.entries), int(row.downloads))


def hashes(db: Connection, workload_ids: Sequence[int]) -> list[str]:
    """The hashes of these workloads, in the order of the ids."""
    found: dict[int, str] = {}
    for chunk in _chunks(workload_ids):
        query = select(t.workload.c.id, t.workload.c.hash).where(t.workload.c.id.in_(chunk))
        found.update({row.id: row.hash for row in db.execute(query)})
    return [found[id_] for id_ in workload_ids]


@dataclass(frozen=True, slots=True)
class Outstanding:
    """A planned case without an attempt that counts."""

    position: int
    workload: str
    variant: Variant


def outstanding(db: Connection, sweep_id: int, after: int = -1, limit: int | None = None) -> list[Outstanding]:
    """Planned cases that have yet to be executed, in order, from the position behind `after` on."""
    query = (
        select(t.sweep_case.c.position, t.workload.c.hash, t.case.c.variant)
        .select_from(t.sweep_case)
        .join(t.case, t.case.c.id == t.sweep_case.c.case_id)
        .join(t.workload, t.workload.c.id == t.case.c.workload_id)
        .where(unanswered(sweep_id), t.sweep_case.c.position > after)
        .order_by(t.sweep_case.c.position)
        .limit(limit)
    )
    return [Outstanding(row.position, row.hash, Variant.parse(row.variant)) for row in db.execute(query)]


@dataclass(frozen=True, kw_only=True)
class Left:
    """How much of a plan has yet to be executed."""

    cases: int
    workloads: int


def left(db: Connection, sweep_id: int) -> Left:
    """Count what :func:`outstanding` lists."""
    query = (
        select(func.count(), func.count(func.distinct(t.case.c.workload_id)))
        .select_from(t.sweep_case)
        .join(t.case, t.case.c.id == t.sweep_case.c.case_id)
        .where(unanswered(sweep_id))
    )
    cases, workloads = db.execute(query).one()
    return Left(cases=cases, workloads=workloads)


def planned_workloads(db: Connection, sweep_id: int) -> int:
    """Workloads a sweep means to settle by execution."""
    query = (
        select(func.count(func.distinct(t.case.c.workload_id)))
        .select_from(t.sweep_case)
        .join(t.case, t.case.c.id == t.sweep_case.c.case_id)
        .where(t.sweep_case.c.sweep_id == sweep_id)
    )
    return int(db.execute(query).scalar_one())


def heirs(db: Connection, plan_id: int, sweep_id: int) -> Iterator[tuple[str, int]]:
    """(workload hash, entries) of every group that inherits: not its own workload ran, but one of its kernel key."""
    group = t.plan_group.c
    ran = _ran(sweep_id)
    keys = select(group.kernel_key).where(group.plan_id == plan_id, group.workload_id.in_(ran))
    query = (
        select(t.workload.c.hash, group.entries)
        .join(t.workload, t.workload.c.id == group.workload_id)
        .where(group.plan_id == plan_id, group.workload_id.not_in(ran), group.kernel_key.in_(keys))
        .order_by(group.id)
    )
    for row in _streamed(db, query):
        yield row.hash, row.entries


def relatives(db: Connection, plan_id: int, workloads: Sequence[str]) -> list[PlannedGroup]:
    """Every group of the kernel keys that these workloads (by hash) belong to."""
    keys: dict[str, None] = {}
    for chunk in _chunks(workloads):
        query = (
            select(t.plan_group.c.kernel_key)
            .join(t.workload, t.workload.c.id == t.plan_group.c.workload_id)
            .where(t.plan_group.c.plan_id == plan_id, t.workload.c.hash.in_(chunk))
        )
        keys.update(dict.fromkeys(db.execute(query).scalars()))
    found: list[PlannedGroup] = []
    for chunk in _chunks(list(keys)):
        query = queries.groups_of(plan_id).where(t.plan_group.c.kernel_key.in_(chunk))
        found += [queries.planned_group(row) for row in db.execute(query)]
    return sorted(found, key=lambda planned: planned.id)


def families(db: Connection, plan_id: int, size: int = STREAMED) -> Iterator[list[PlannedGroup]]:
    """Every group of a plan, in lists of about `size` that keep the groups of a kernel key together."""
    kept: list[PlannedGroup] = []
    query = queries.groups_of(plan_id).order_by(t.plan_group.c.kernel_key, t.plan_group.c.id)
    for key, rows in groupby(_streamed(db, query), key=lambda row: str(row.kernel_key)):
        for row in rows:
            kept.append(queries.planned_group(row))
            if len(kept) >= size and not key:  # Groups without a key inherit nothing from each other.
                yield kept
                kept = []
        if len(kept) >= size:
            yield kept
            kept = []
    if kept:
        yield kept


def records(db: Connection, sweep_id: int) -> Iterator[Row[Any]]:
    """Attempts that count: id, workload_id, hash, variant, data (the packed record)."""
    query = (
        select(t.attempt.c.id, t.case.c.workload_id, t.workload.c.hash, t.case.c.variant, t.blob.c.data)
        .select_from(t.attempt)
        .join(t.case, t.case.c.id == t.attempt.c.case_id)
        .join(t.workload, t.workload.c.id == t.case.c.workload_id)
        .join(t.blob, t.blob.c.id == t.attempt.c.blob_id)
        .where(queries.valid(sweep_id, COUNTING))
        .order_by(t.attempt.c.id)
    )
    yield from _streamed(db, query)


def failure_counts(db: Connection, sweep_id: int) -> Iterator[Row[Any]]:
    """Failing outcomes of what counts and of probes: check, kind, variant, family, attempt_kind, failures."""
    columns = (t.blocker.c.check, t.blocker.c.kind, t.case.c.variant, t.workload.c.family, t.attempt.c.kind)
    query = (
        select(*columns[:4], columns[4].label("attempt_kind"), func.count().label("failures"))
        .select_from(t.attempt)
        .join(t.case, t.case.c.id == t.attempt.c.case_id)
        .join(t.workload, t.workload.c.id == t.case.c.workload_id)
        .join(t.blocker, t.blocker.c.attempt_id == t.attempt.c.id)
        .where(queries.valid(sweep_id, queries.BLOCKING))
        .group_by(*columns)
    )
    yield from db.execute(query)


def unanswered(sweep_id: int) -> Any:
    """Cases that a sweep has planned and no attempt of it answers."""
    answered = exists().where(
        t.attempt.c.sweep_id == sweep_id,
        t.attempt.c.case_id == t.sweep_case.c.case_id,
        t.attempt.c.kind.in_(COUNTING),
    )
    return and_(t.sweep_case.c.sweep_id == sweep_id, ~answered)


def _ran(sweep_id: int) -> Select[Any]:
    """Ids of the workloads with an attempt that counts."""
    return (
        select(t.case.c.workload_id)
        .join(t.attempt, t.attempt.c.case_id == t.case.c.id)
        .where(queries.valid(sweep_id, COUNTING))
    )


def _streamed(db: Connection, query: Select[Any]) -> Iterator[Row[Any]]:
    yield from db.execute(query, execution_options={"yield_per": STREAMED})


def _chunks(names: Sequence[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(names), CHUNK):
        yield list(names[start : start + CHUNK])
