"""What is read of the fix queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, case, func, select

from neuronqa.db import fix_tables as ft
from neuronqa.domain.fix import Ending, ItemState, Judgement
from neuronqa.errors import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRow:
    """An item as it stands."""

    id: int
    cluster_id: int
    sweep_id: int
    lane: str
    operator: str
    title: str
    state: ItemState
    version: int
    place: int
    entries: int
    """What the ranking says a fix of it and of all before it would turn green."""
    downloads: int
    rejections: int
    not_before: float
    made: float
    landed_build: str | None

    def to_json(self) -> dict[str, Any]:
        names = ("id", "cluster_id", "operator", "title", "lane", "place", "entries", "downloads", "rejections")
        return {**{name: getattr(self, name) for name in names}, "state": self.state.value}


def item(db: Connection, item_id: int) -> ItemRow:
    """Raises BadInput for an item there is not."""
    row = db.execute(select(ft.fix_item).where(ft.fix_item.c.id == item_id)).one_or_none()
    if row is None:
        raise BadInput(f"the queue has no item {item_id}", hint="`neuronqa queue list` shows what it has")
    return item_row(row)


def items(db: Connection, states: Sequence[ItemState] = (), *, after: int = 0, limit: int = 50) -> list[ItemRow]:
    """Items by id from behind `after` on, in these states or in any."""
    query = select(ft.fix_item).where(ft.fix_item.c.id > after).order_by(ft.fix_item.c.id).limit(limit)
    if states:
        query = query.where(ft.fix_item.c.state.in_([state.value for state in states]))
    return [item_row(row) for row in db.execute(query)]


def by_state(db: Connection) -> dict[ItemState, int]:
    """How many items are in each state."""
    query = select(ft.fix_item.c.state, func.count()).group_by(ft.fix_item.c.state)
    counted = {ItemState(state): n for state, n in db.execute(query)}
    return {state: counted.get(state, 0) for state in ItemState}


def live_clusters(db: Connection) -> dict[int, int]:
    """Cluster -> its live item."""
    query = select(ft.fix_item.c.live_cluster_id, ft.fix_item.c.id).where(ft.fix_item.c.live_cluster_id.is_not(None))
    return {row.live_cluster_id: row.id for row in db.execute(query)}


def submissions(db: Connection, item_id: int) -> list[Any]:
    """What was handed in for an item, newest first."""
    query = select(ft.fix_submission).where(ft.fix_submission.c.item_id == item_id)
    return list(db.execute(query.order_by(ft.fix_submission.c.id.desc())))


def accepted(db: Connection, states: Sequence[ItemState]) -> list[Any]:
    """The accepted submissions of the items in these states, in the order they were handed in."""
    query = (
        select(ft.fix_submission)
        .join(ft.fix_item, ft.fix_item.c.id == ft.fix_submission.c.item_id)
        .where(
            ft.fix_item.c.state.in_([state.value for state in states]),
            ft.fix_submission.c.judgement == Judgement.ACCEPTED.value,
        )
    )
    return list(db.execute(query.order_by(ft.fix_submission.c.id)))


def endings(db: Connection, item_id: int, ending: Ending) -> int:
    """How many leases of an item ended so."""
    lease = ft.fix_lease.c
    query = select(func.count()).where(lease.item_id == item_id, lease.ending == ending.value)
    return int(db.execute(query).scalar_one())


def agents(db: Connection, since: float) -> list[Any]:
    """What each agent did since then, by name: agent, leases, submitted, held (leases that go on)."""
    lease = ft.fix_lease.c
    submitted = func.sum(case((lease.ending == Ending.SUBMITTED.value, 1), else_=0)).label("submitted")
    held = func.sum(case((lease.ended.is_(None), 1), else_=0)).label("held")
    query = select(lease.agent, func.count().label("leases"), submitted, held).where(lease.granted >= since)
    return list(db.execute(query.group_by(lease.agent).order_by(lease.agent)))


def journal(db: Connection, item_id: int) -> list[Any]:
    """Everything that became of an item, newest first."""
    query = select(ft.fix_event).where(ft.fix_event.c.item_id == item_id)
    return list(db.execute(query.order_by(ft.fix_event.c.version.desc())))


def events(db: Connection, since: float) -> list[Any]:
    """Everything that became of any item since then, oldest first."""
    query = select(ft.fix_event).where(ft.fix_event.c.at >= since)
    return list(db.execute(query.order_by(ft.fix_event.c.at, ft.fix_event.c.item_id, ft.fix_event.c.version)))


def item_row(row: Any) -> ItemRow:
    """From a row of the table."""
    values = {name: getattr(row, name) for name in ItemRow.__dataclass_fields__}
    return ItemRow(**{**values, "state": ItemState(row.state)})
