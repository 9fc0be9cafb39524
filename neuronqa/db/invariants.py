"""What must hold in any database of ours, asked of the rows themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, and_, func, or_, select, text

from neuronqa.db import tables as t
from neuronqa.db.queries import COUNTING
from neuronqa.db.schema import metadata


@dataclass(frozen=True, kw_only=True)
class Broken:
    """How often something that must hold does not. Zero is good news, and is told as well."""

    what: str
    times: int


def check(db: Connection) -> Iterator[Broken]:
    """Count the violations of every invariant."""
    if db.dialect.name == "sqlite":
        said = db.execute(text("PRAGMA quick_check(10)")).scalars().all()
        yield Broken(what="the file's own structure is whole", times=sum(line != "ok" for line in said))
    for what, query in _questions():
        yield Broken(what=what, times=int(db.execute(query).scalar_one()))
    for table in metadata.sorted_tables:
        for column in table.c:
            for key in column.foreign_keys:
                target = key.column.table.alias("target")
                lost = (
                    select(func.count())
                    .select_from(table.outerjoin(target, target.c[key.column.name] == column))
                    .where(column.is_not(None), target.c[key.column.name].is_(None))
                )
                what = f"{table.name}.{column.name} points at a {key.column.table.name} that is there"
                yield Broken(what=what, times=int(db.execute(lost).scalar_one()))


def _questions() -> Iterator[tuple[str, Select[Any]]]:
    entries = select(t.entry.c.plan_id, func.count().label("n")).group_by(t.entry.c.plan_id).subquery()
    yield (
        "every registered entry is in its plan",
        _count(t.plan.outerjoin(entries, entries.c.plan_id == t.plan.c.id)).where(
            func.coalesce(entries.c.n, 0) != t.plan.c.registered
        ),
    )
    listed = select(t.entry.c.group_id, func.count().label("n"), func.sum(t.entry.c.downloads).label("d"))
    weights = listed.group_by(t.entry.c.group_id).subquery()
    yield (
        "every group weighs what its entries do",
        _count(t.plan_group.outerjoin(weights, weights.c.group_id == t.plan_group.c.id)).where(
            or_(
                func.coalesce(weights.c.n, 0) != t.plan_group.c.entries,
                func.coalesce(weights.c.d, 0) != t.plan_group.c.downloads,
            )
        ),
    )
    states = and_(t.standing.c.sweep_id == t.sweep.c.id, t.standing.c.group_id == t.plan_group.c.id)
    groups = t.sweep.join(t.plan_group, t.plan_group.c.plan_id == t.sweep.c.plan_id)
    yield (
        "every entry of a settled sweep has a state",
        _count(groups.outerjoin(t.standing, states)).where(
            t.sweep.c.summary.is_not(None), t.standing.c.group_id.is_(None), t.sweep.c.state != "running"
        ),
    )
    twice = (
        select(t.attempt.c.case_id)
        .where(t.attempt.c.kind.in_(COUNTING), t.attempt.c.kind != "alone")
        .group_by(t.attempt.c.sweep_id, t.attempt.c.case_id)
        .having(func.count() > 1)
        .subquery()
    )
    yield "no case counts twice in a sweep", _count(twice)
    silent = t.attempt.outerjoin(t.result, t.result.c.attempt_id == t.attempt.c.id)
    yield "every attempt has results", _count(silent).where(t.result.c.attempt_id.is_(None))
    answered = and_(t.result.c.attempt_id == t.blocker.c.attempt_id, t.result.c.check == t.blocker.c.check)
    yield (
        "every blocker is of a check with a result",
        _count(t.blocker.outerjoin(t.result, answered)).where(t.result.c.attempt_id.is_(None)),
    )


def _count(source: Any) -> Select[Any]:
    return select(func.count()).select_from(source)
