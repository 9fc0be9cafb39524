"""Workloads of a plan: one row a group of entries that are executed as one."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, and_, select

from neuronqa.db import tables as t
from neuronqa.db.browse.listing import Listing, Sort
from neuronqa.db.columns import escape
from neuronqa.db.queries import SweepRow
from neuronqa.errors import BadInput


def listing(row: SweepRow) -> Listing:
    """Workloads by the entries that share each."""
    group, standing, workload = t.plan_group.c, t.standing.c, t.workload.c
    rows = (
        select(
            workload.hash,
            group.model_type.label("family"),
            group.class_name,
            standing.label.label("state"),
            standing.detail,
            standing.evidence,
            group.entries,
            group.downloads,
        )
        .select_from(t.plan_group)
        .join(t.workload, workload.id == group.workload_id)
        .join(t.standing, and_(standing.group_id == group.id, standing.sweep_id == row.id))
        .where(group.plan_id == row.plan_id)
    )
    return Listing(
        name="workloads",
        rows=rows,
        key=group.id,
        sorts={
            "entries": Sort(column=group.entries, descending=True),
            "downloads": Sort(column=group.downloads, descending=True),
            "family": Sort(column=group.model_type),
        },
        filters={
            "evidence": standing.evidence,
            "missed": standing.missed,
            "state": standing.label,
            "family": group.model_type,
        },
        search=lambda text: group.class_name.contains(escape(text), autoescape=True),
        facets=("evidence", "missed", "state", "family"),
    )


def workload(db: Connection, hash_: str) -> Row[Any]:
    """The workload of that hash. Raises BadInput for none."""
    row = db.execute(select(t.workload).where(t.workload.c.hash == hash_)).first()
    if row is None:
        raise BadInput(f"there is no workload {hash_!r}")
    return row


def attempts(db: Connection, sweep_id: int, workload_id: int) -> list[Row[Any]]:
    """Every attempt at a workload in a sweep, in order: the attempt's columns and its variant."""
    query = (
        select(t.attempt, t.case.c.variant)
        .join(t.case, t.case.c.id == t.attempt.c.case_id)
        .where(t.attempt.c.sweep_id == sweep_id, t.case.c.workload_id == workload_id)
        .order_by(t.attempt.c.id)
    )
    return list(db.execute(query))


def results(db: Connection, attempt_ids: list[int]) -> dict[int, list[Row[Any]]]:
    """The results of some attempts, by attempt."""
    found: dict[int, list[Row[Any]]] = {id_: [] for id_ in attempt_ids}
    for row in db.execute(select(t.result).where(t.result.c.attempt_id.in_(attempt_ids))):
        found[row.attempt_id].append(row)
    return found
