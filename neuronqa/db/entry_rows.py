"""A sweep's entries with where each stands, streamed in rank order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, and_, select

from neuronqa.db import queries
from neuronqa.db import tables as t
from neuronqa.db.queries import SweepRow
from neuronqa.domain.outcome import Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRow:
    """One entry as a settled sweep left it."""

    rank: int
    name: str
    downloads: int
    task: str
    family: str
    group_id: int
    standing: Standing
    evidence: str
    rung: str
    """The lowest rung it missed; empty for a green one."""
    outcome: str


def entries(db: Connection, row: SweepRow) -> Iterator[EntryRow]:
    """Every entry of the sweep's plan. One the sweep kept no standing of has not been run."""
    entry, stand = t.entry.c, t.standing.c
    query = (
        select(
            entry.rank,
            entry.name,
            entry.downloads,
            entry.task,
            entry.group_id,
            t.plan_group.c.model_type,
            stand.evidence,
            stand.label,
            stand.missed,
            stand.kind,
            stand.detail,
        )
        .join(t.plan_group, t.plan_group.c.id == entry.group_id)
        .outerjoin(t.standing, and_(stand.group_id == entry.group_id, stand.sweep_id == row.id))
        .where(entry.plan_id == row.plan_id)
        .order_by(entry.rank)
    )
    for one in db.execute(query, execution_options={"yield_per": 5000}):
        outcome = queries.outcome(one.kind, one.detail) if one.kind else None
        shown = outcome.standing if outcome else Standing.PASS
        yield EntryRow(
            rank=one.rank,
            name=one.name,
            downloads=one.downloads,
            task=one.task,
            family=one.model_type,
            group_id=one.group_id,
            standing=shown if one.label is not None else Standing.NOT_RUN,
            evidence=one.evidence or "none",
            rung=one.missed or "",
            outcome=str(outcome) if outcome else "",
        )
