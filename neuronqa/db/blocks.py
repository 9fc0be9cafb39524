"""What stands between each group of entries and green."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, and_, select

from neuronqa.db import cluster_tables as ct
from neuronqa.db import tables as t


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedGroup:
    """A group of entries that is not green, and every cluster in its way."""

    by: frozenset[int]
    entries: int
    complete: bool
    """Has every check it was asked an answer?"""


def blocked(db: Connection, sweep_id: int) -> list[BlockedGroup]:
    """Every group of a triaged sweep that some cluster keeps from green."""
    query = (
        select(ct.group_block.c.group_id, ct.group_block.c.cluster_id, t.plan_group.c.entries, ct.stands_by.c.complete)
        .join(t.plan_group, t.plan_group.c.id == ct.group_block.c.group_id)
        .join(
            ct.stands_by,
            and_(ct.stands_by.c.group_id == ct.group_block.c.group_id, ct.stands_by.c.sweep_id == sweep_id),
        )
        .where(ct.group_block.c.sweep_id == sweep_id)
    )
    found: dict[int, tuple[set[int], int, bool]] = {}
    for row in db.execute(query):
        by, _, _ = found.setdefault(row.group_id, (set(), row.entries, row.complete))
        by.add(row.cluster_id)
    return [BlockedGroup(by=frozenset(by), entries=n, complete=complete) for by, n, complete in found.values()]


def names_behind(db: Connection, sweep_id: int, cluster_id: int, workloads: Sequence[str], limit: int) -> list[str]:
    """Names of entries that a cluster keeps from green and that stand by one of these workloads, most wanted first."""
    mine = (
        select(ct.group_block.c.group_id)
        .join(
            ct.stands_by,
            and_(ct.stands_by.c.group_id == ct.group_block.c.group_id, ct.stands_by.c.sweep_id == sweep_id),
        )
        .join(t.workload, t.workload.c.id == ct.stands_by.c.workload_id)
        .where(
            ct.group_block.c.sweep_id == sweep_id,
            ct.group_block.c.cluster_id == cluster_id,
            t.workload.c.hash.in_(workloads),
        )
    )
    query = select(t.entry.c.name).where(t.entry.c.group_id.in_(mine)).order_by(t.entry.c.downloads.desc())
    return list(db.execute(query.limit(limit)).scalars())
