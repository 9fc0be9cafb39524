"""Two sweeps of one plan, group by group: where each stood before and stands now."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, FromClause, Subquery, and_, case, func, select

from neuronqa.db import cluster_tables as ct
from neuronqa.db import tables as t
from neuronqa.db.browse.listing import Ask, Count, Facets, Listing, Sort, facets_of
from neuronqa.db.queries import SweepRow
from neuronqa.domain.change import Change
from neuronqa.domain.outcome import LADDER, Kind, Standing

BEFORE, AFTER = t.standing.alias("before"), t.standing.alias("after")
DIFFERENT = tuple(change.value for change in Change if change.is_one)
NOT_RUN = tuple(kind.value for kind in Kind if kind.rules.standing is Standing.NOT_RUN)


def changed(causes: Causes) -> ColumnElement[str]:
    """:func:`neuronqa.domain.change.change` of a group, from both its standings and what keeps it from green."""
    was_green, is_green = BEFORE.c.label == "green", AFTER.c.label == "green"
    was_open, is_open = BEFORE.c.kind.in_(NOT_RUN), AFTER.c.kind.in_(NOT_RUN)
    lower = _height(AFTER.c.missed) < _height(BEFORE.c.missed)
    return case(
        (and_(was_green, is_green), Change.GREEN.value),
        (and_(was_open, is_open), Change.UNKNOWN.value),
        (was_open, Change.NEWLY_RUN.value),
        (is_open, Change.NOT_RUN.value),
        (was_green, Change.REGRESSED.value),
        (is_green, Change.FIXED.value),
        (and_(causes.lost == 0, causes.gained == 0), Change.FAILING.value),
        (and_(lower, causes.lost > 0), Change.MASKED.value),
        else_=Change.SHIFTED.value,
    )


def _height(missed: ColumnElement[str]) -> ColumnElement[int]:
    return case({rung.value: rung.height for rung in LADDER}, value=missed, else_=len(LADDER))


class Causes:
    """How many keys of causes a group has in both sweeps, and in one only."""

    def __init__(self, base: SweepRow, head: SweepRow) -> None:
        was, now = (_keys(sweep) for sweep in (base, head))
        both = was.join(now, and_(was.c.group_id == now.c.group_id, was.c.key == now.c.key))
        self._was, self._now = _counted(was, was.c.group_id), _counted(now, now.c.group_id)
        self._both = _counted(both, was.c.group_id)
        shared = func.coalesce(self._both.c.n, 0)
        self.lost = func.coalesce(self._was.c.n, 0) - shared
        self.gained = func.coalesce(self._now.c.n, 0) - shared

    def beside(self, groups: FromClause) -> FromClause:
        """The same groups with the counts joined on."""
        for counted in (self._was, self._now, self._both):
            groups = groups.outerjoin(counted, counted.c.group_id == t.plan_group.c.id)
        return groups


def _keys(sweep: SweepRow) -> Subquery:
    block = ct.group_block
    named = select(block.c.group_id, ct.cluster.c.key).join(ct.cluster, ct.cluster.c.id == block.c.cluster_id)
    return named.where(block.c.sweep_id == sweep.id).distinct().subquery()


def _counted(keys: FromClause, group_id: ColumnElement[int]) -> Subquery:
    return select(group_id.label("group_id"), func.count().label("n")).select_from(keys).group_by(group_id).subquery()


@dataclass(frozen=True, slots=True)
class Sum:
    """Entries and groups that changed in one way."""

    change: str
    before: str
    after: str
    family: str
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
    group, causes = t.plan_group.c, Causes(base, head)
    columns = (
        changed(causes).label("change"),
        BEFORE.c.label.label("before"),
        AFTER.c.label.label("after"),
        group.model_type.label("family"),
    )
    query = (
        select(*columns, func.sum(group.entries).label("entries"), func.count().label("groups"))
        .select_from(causes.beside(_joined(base, head)))
        .where(group.plan_id == head.plan_id)
        .group_by(*columns)
    )
    found = [
        Sum(row.change, row.before, row.after, row.family, int(row.entries), row.groups) for row in db.execute(query)
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
        if Change(one.change).is_one and all(getattr(one, name) in values for name, values in ask.filters.items())
    ]
    rows = ([*(getattr(one, name) for name in FACETS), one.groups] for one in some)
    return Count(n=sum(one.groups for one in some)), facets_of(FACETS, rows)


def listing(base: SweepRow, head: SweepRow) -> Listing:
    """The groups that changed, those of most entries first."""
    group, causes = t.plan_group.c, Causes(base, head)
    change = changed(causes)
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
        .select_from(causes.beside(_joined(base, head)).outerjoin(t.workload, t.workload.c.id == group.workload_id))
        .where(group.plan_id == head.plan_id, change.in_(DIFFERENT))
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


def _joined(base: SweepRow, head: SweepRow) -> FromClause:
    group = t.plan_group
    return group.join(BEFORE, and_(BEFORE.c.group_id == group.c.id, BEFORE.c.sweep_id == base.id)).join(
        AFTER, and_(AFTER.c.group_id == group.c.id, AFTER.c.sweep_id == head.id)
    )
