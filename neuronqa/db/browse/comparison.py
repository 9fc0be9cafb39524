"""Two sweeps of one plan, group by group: where each stood before and stands now."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, and_, case, func, or_, select

from neuronqa.db import tables as t
from neuronqa.db.browse.listing import Ask, Count, Facets, Listing, Sort, facets_of
from neuronqa.db.queries import SweepRow
from neuronqa.domain.outcome import LADDER, Kind, Standing


class Change(StrEnum):
    """What became of entries, by what they miss first."""

    REGRESSED = "regressed"
    """Green before, failing now."""
    FIXED = "fixed"
    MASKED = "newly masked"
    """Fails at a lower rung than before, so that what it failed by is not reached."""
    SHIFTED = "shifted"
    """Fails by another outcome."""
    NEWLY_RUN = "newly run"
    NOT_RUN = "not run"
    """Was run before."""
    FAILING = "failing"
    GREEN = "green"
    UNKNOWN = "unknown"
    """Run in neither."""


BEFORE, AFTER = t.standing.alias("before"), t.standing.alias("after")
NOT_RUN = tuple(kind.value for kind in Kind if kind.rules.standing is Standing.NOT_RUN)


def changed() -> ColumnElement[str]:
    """The change of a group, from both its standings."""
    was_green, is_green = BEFORE.c.label == "green", AFTER.c.label == "green"
    was_open, is_open = BEFORE.c.kind.in_(NOT_RUN), AFTER.c.kind.in_(NOT_RUN)
    same = and_(BEFORE.c.missed == AFTER.c.missed, BEFORE.c.kind == AFTER.c.kind, BEFORE.c.detail == AFTER.c.detail)
    return case(
        (and_(was_green, is_green), Change.GREEN.value),
        (and_(was_open, is_open), Change.UNKNOWN.value),
        (was_open, Change.NEWLY_RUN.value),
        (is_open, Change.NOT_RUN.value),
        (was_green, Change.REGRESSED.value),
        (is_green, Change.FIXED.value),
        (same, Change.FAILING.value),
        (_height(AFTER.c.missed) < _height(BEFORE.c.missed), Change.MASKED.value),
        else_=Change.SHIFTED.value,
    )


def _height(missed: ColumnElement[str]) -> ColumnElement[int]:
    return case({rung.value: rung.height for rung in LADDER}, value=missed, else_=len(LADDER))


@dataclass(frozen=True, slots=True)
class Sum:
    """Entries and groups that changed in one way."""

    change: str
    before: str
    after: str
    family: str
    differs: bool
    entries: int
    groups: int


KEPT: Final = 16
_sums: OrderedDict[tuple[Any, ...], list[Sum]] = OrderedDict()
"""Of the latest pairs of finished sweeps that were asked for: their rows do not change any more."""


def sums(db: Connection, base: SweepRow, head: SweepRow) -> list[Sum]:
    """Every group of the plan, added up by what became of it; counted once for two sweeps that have ended."""
    key = (str(db.engine.url), base.id, base.finished, head.id, head.finished)
    if key in _sums:
        _sums.move_to_end(key)
        return _sums[key]
    group = t.plan_group.c
    columns = (
        changed().label("change"),
        BEFORE.c.label.label("before"),
        AFTER.c.label.label("after"),
        group.model_type.label("family"),
        case((_differs(), 1), else_=0).label("differs"),
    )
    query = (
        select(*columns, func.sum(group.entries).label("entries"), func.count().label("groups"))
        .select_from(_joined(base, head))
        .where(group.plan_id == head.plan_id)
        .group_by(*columns)
    )
    found = [
        Sum(row.change, row.before, row.after, row.family, bool(row.differs), int(row.entries), row.groups)
        for row in db.execute(query)
    ]
    if base.finished and head.finished:
        _sums[key] = found
        while len(_sums) > KEPT:
            _sums.popitem(last=False)
    return found


def counts(db: Connection, base: SweepRow, head: SweepRow) -> dict[Change, int]:
    """Entries by change: every entry of the plan is in one of them."""
    counted: Counter[str] = Counter()
    for one in sums(db, base, head):
        counted[one.change] += one.entries
    return {change: counted[change.value] for change in Change if counted[change.value]}


FACETS: Final = ("change", "after", "before", "family")


def _tallied(db: Connection, base: SweepRow, head: SweepRow, ask: Ask) -> tuple[Count, Facets] | None:
    if ask.search or not set(ask.filters) <= set(FACETS):
        return None
    some = [
        one
        for one in sums(db, base, head)
        if one.differs and all(getattr(one, name) in values for name, values in ask.filters.items())
    ]
    rows = ([*(getattr(one, name) for name in FACETS), one.groups] for one in some)
    return Count(n=sum(one.groups for one in some)), facets_of(FACETS, rows)


def _differs() -> ColumnElement[bool]:
    return or_(BEFORE.c.label != AFTER.c.label, BEFORE.c.detail != AFTER.c.detail)


def listing(base: SweepRow, head: SweepRow) -> Listing:
    """The groups whose standing differs, those of most entries first."""
    group, change = t.plan_group.c, changed()
    rows = (
        select(
            change.label("change"),
            group.model_type.label("family"),
            group.class_name,
            BEFORE.c.label.label("before"),
            BEFORE.c.detail.label("before_detail"),
            AFTER.c.label.label("after"),
            AFTER.c.detail.label("after_detail"),
            group.entries,
            group.downloads,
            t.workload.c.hash.label("workload"),
        )
        .select_from(_joined(base, head).outerjoin(t.workload, t.workload.c.id == group.workload_id))
        .where(group.plan_id == head.plan_id, _differs())
    )
    return Listing(
        name="changes",
        rows=rows,
        key=group.id,
        sorts={"entries": Sort(column=group.entries, descending=True)},
        filters={"change": change, "family": group.model_type, "before": BEFORE.c.label, "after": AFTER.c.label},
        facets=FACETS,
        tallied=lambda db, ask: _tallied(db, base, head, ask),
    )


def _joined(base: SweepRow, head: SweepRow) -> Any:
    group = t.plan_group
    return group.join(BEFORE, and_(BEFORE.c.group_id == group.c.id, BEFORE.c.sweep_id == base.id)).join(
        AFTER, and_(AFTER.c.group_id == group.c.id, AFTER.c.sweep_id == head.id)
    )
