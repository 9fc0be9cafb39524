"""Registered entries: one row a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, func, select

from neuronqa.db import cluster_tables as ct
from neuronqa.db import tables as t
from neuronqa.db import tally_tables as tt
from neuronqa.db.browse.listing import FACET_VALUES, Ask, Count, Facets, Listing, Sort
from neuronqa.db.columns import escape
from neuronqa.db.queries import SweepRow
from neuronqa.errors import BadInput

TALLIED: Final = ("missed", "state", "evidence", "family")


def listing(row: SweepRow) -> Listing:
    """Entries in the order of their rank, with where each stands."""
    entry, group, standing = t.entry.c, t.plan_group.c, t.standing.c
    columns = (
        entry.rank,
        entry.name,
        group.model_type.label("family"),
        group.class_name,
        standing.label.label("state"),
        standing.detail,
        standing.evidence,
        entry.task,
        entry.library,
        entry.downloads,
    )
    return Listing(
        name="models",
        rows=_rows(row, columns),
        key=entry.rank,
        sorts={"rank": Sort(column=entry.rank)},
        filters={
            "missed": standing.missed,
            "state": standing.label,
            "evidence": standing.evidence,
            "family": group.model_type,
            "task": entry.task,
            "library": entry.library,
        },
        narrowed={
            "cluster": lambda id_: _blocked_by(row, id_),
            "op": lambda name: _needing(row, name),
            "workload": lambda hash_: _standing_by(row, hash_),
        },
        search=lambda text: entry.name.contains(escape(text), autoescape=True),
        facets=TALLIED,
        tallied=lambda db, ask: _tallied(db, row, ask),
        whole=lambda _db: Count(n=row.catalog.registered),
    )


def _rows(row: SweepRow, columns: tuple[Any, ...]) -> Select[Any]:
    return (
        select(*columns)
        .select_from(t.entry)
        .join(t.plan_group, t.plan_group.c.id == t.entry.c.group_id)
        .join(t.standing, and_(t.standing.c.group_id == t.entry.c.group_id, t.standing.c.sweep_id == row.id))
        .where(t.entry.c.plan_id == row.plan_id)
    )


def _blocked_by(row: SweepRow, cluster: str) -> ColumnElement[bool]:
    """Entries a cluster keeps from green."""
    if not cluster.isdecimal():
        raise BadInput(f"{cluster!r:.40} is no cluster's id")
    block = ct.group_block.c
    groups = select(block.group_id).where(block.cluster_id == int(cluster[:18]), block.sweep_id == row.id)
    return t.entry.c.group_id.in_(groups)


def _needing(row: SweepRow, op: str) -> ColumnElement[bool]:
    """Entries of the kernel keys whose executed workload needs `op` and did not have it on the device."""
    keys = (
        select(t.plan_group.c.kernel_key)
        .join(tt.op_need, tt.op_need.c.workload_id == t.plan_group.c.workload_id)
        .where(t.plan_group.c.plan_id == row.plan_id, tt.op_need.c.sweep_id == row.id, tt.op_need.c.op == op)
    )
    return t.plan_group.c.kernel_key.in_(keys)


def _standing_by(row: SweepRow, hash_: str) -> ColumnElement[bool]:
    """Entries of the kernel key of a workload: they share its verdict."""
    keys = (
        select(t.plan_group.c.kernel_key)
        .join(t.workload, t.workload.c.id == t.plan_group.c.workload_id)
        .where(t.plan_group.c.plan_id == row.plan_id, t.workload.c.hash == hash_)
    )
    return t.plan_group.c.kernel_key.in_(keys)


def _tallied(db: Connection, row: SweepRow, ask: Ask) -> tuple[Count, Facets] | None:
    """Exact, where only architecture and state are asked for."""
    if ask.search or not set(ask.filters) <= set(TALLIED):
        return None
    tally = tt.state_tally.c
    columns = {"missed": tally.missed, "state": tally.label, "evidence": tally.evidence, "family": tally.family}
    asked = [columns[name].in_(values) for name, values in ask.filters.items()]
    facets: Facets = {}
    for name, column in columns.items():
        n = func.sum(tally.entries)
        query = select(column, n).where(tally.sweep_id == row.id, *asked).group_by(column)
        found = db.execute(query.order_by(n.desc(), column).limit(FACET_VALUES))
        facets[name] = [(str(value), int(count)) for value, count in found]
    total = select(func.coalesce(func.sum(tally.entries), 0)).where(tally.sweep_id == row.id, *asked)
    return Count(n=int(db.execute(total).scalar_one())), facets


@dataclass(frozen=True, kw_only=True)
class Model:
    """An entry, the group it shares its verdict with, and where that stands."""

    entry: Row[Any]
    group: Row[Any]
    standing: Row[Any] | None
    by: str
    """Hash of the workload whose findings decide; empty where nothing ran."""


def model(db: Connection, row: SweepRow, rank: int) -> Model:
    """The entry of that rank. Raises BadInput for none."""
    entry = db.execute(select(t.entry).where(t.entry.c.plan_id == row.plan_id, t.entry.c.rank == rank)).first()
    if entry is None:
        raise BadInput(f"there is no entry of rank {rank} in {row.catalog.name}")
    of_group = (
        select(t.plan_group, t.workload.c.hash)
        .outerjoin(t.workload, t.workload.c.id == t.plan_group.c.workload_id)
        .where(t.plan_group.c.id == entry.group_id)
    )
    group = db.execute(of_group).one()
    at = select(t.standing).where(t.standing.c.sweep_id == row.id, t.standing.c.group_id == entry.group_id)
    return Model(entry=entry, group=group, standing=db.execute(at).first(), by=_decided_by(db, row, group))


def _decided_by(db: Connection, row: SweepRow, group: Row[Any]) -> str:
    """Its own workload where that ran, else the one of its kernel key that did, as the standings choose."""
    if not group.kernel_key:
        return ""
    kin = t.plan_group.c
    ran = (
        select(t.attempt.c.id)
        .join(t.case, t.case.c.id == t.attempt.c.case_id)
        .where(t.case.c.workload_id == kin.workload_id, t.attempt.c.sweep_id == row.id)
        .where(t.attempt.c.kind.in_(("record", "alone")))
        .exists()
    )
    query = (
        select(t.workload.c.hash)
        .select_from(t.plan_group)
        .join(t.workload, t.workload.c.id == kin.workload_id)
        .where(kin.plan_id == row.plan_id, kin.kernel_key == group.kernel_key, ran)
        .order_by(kin.id != group.id, kin.entries.desc(), kin.downloads.desc(), t.workload.c.hash.desc())
        .limit(1)
    )
    return db.execute(query).scalar() or ""
