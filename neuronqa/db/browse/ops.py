"""Operators: how the device ran them, what needs those it did not run, and in which forms."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, Text, case, cast, func, select

from neuronqa.db import tables as t
from neuronqa.db import tally_tables as tt
from neuronqa.db.browse.listing import Listing, Sort
from neuronqa.db.columns import escape


def listing(sweep_id: int) -> Listing:
    """One row an operator: its calls on the device and off it, and the entries that need it and lack it."""
    tally = tt.op_tally.c
    native = func.sum(case((tally.mechanism == 0, tally.calls), else_=0))
    fallen = func.sum(case((tally.mechanism != 0, tally.calls), else_=0))
    needs = (
        select(
            tt.op_need.c.op,
            func.count().label("workloads"),
            func.sum(tt.op_need.c.entries).label("entries"),
            func.sum(tt.op_need.c.downloads).label("downloads"),
        )
        .where(tt.op_need.c.sweep_id == sweep_id)
        .group_by(tt.op_need.c.op)
        .subquery()
    )
    total = func.sum(tally.calls)
    counted = (
        select(
            tally.op,
            case((fallen == 0, "native"), (native == 0, "fallback"), else_="partly").label("support"),
            total.label("calls"),
            fallen.label("fallback_calls"),
            func.sum(case((tally.mechanism != 0, tally.ns), else_=0)).label("fallback_ns"),
            func.sum(case((tally.mechanism != 0, tally.nbytes), else_=0)).label("fallback_bytes"),
        )
        .where(tally.sweep_id == sweep_id)
        .group_by(tally.op)
        .subquery()
    )
    entries, workloads = func.coalesce(needs.c.entries, 0), func.coalesce(needs.c.workloads, 0)
    rows = (
        select(
            counted.c.op,
            counted.c.support,
            entries.label("entries"),
            workloads.label("workloads"),
            counted.c.calls,
            counted.c.fallback_calls,
            counted.c.fallback_ns,
            counted.c.fallback_bytes,
        )
        .select_from(counted)
        .outerjoin(needs, needs.c.op == counted.c.op)
    )
    return Listing(
        name="operators",
        rows=rows,
        key=counted.c.op,
        sorts={
            "entries": Sort(column=entries, descending=True),
            "calls": Sort(column=counted.c.calls, descending=True),
            "fallback_ns": Sort(column=counted.c.fallback_ns, descending=True),
            "op": Sort(column=counted.c.op),
        },
        filters={"support": counted.c.support},
        search=lambda text: counted.c.op.contains(escape(text), autoescape=True),
        facets=("support",),
    )


def uses(db: Connection, sweep_id: int, op: str) -> list[Row[Any]]:
    """One row a dtype and mechanism."""
    query = select(tt.op_tally).where(tt.op_tally.c.sweep_id == sweep_id, tt.op_tally.c.op == op)
    return list(db.execute(query.order_by(tt.op_tally.c.mechanism, tt.op_tally.c.calls.desc())))


def worksheet(sweep_id: int) -> Listing:
    """The forms in which operators are needed that the device did not run itself."""
    sample = tt.op_sample.c
    rows = select(
        sample.position,
        sample.op,
        sample.dtype,
        sample.phase,
        sample.direction,
        sample.shapes,
        sample.strides,
        sample.entries,
        sample.downloads,
        sample.workloads,
        sample.calls,
        sample.attempt_id.label("attempt"),
    ).where(sample.sweep_id == sweep_id)
    return Listing(
        name="worksheet",
        rows=rows,
        key=sample.op.concat(":").concat(cast(sample.position, Text)),
        sorts={"entries": Sort(column=sample.entries, descending=True), "op": Sort(column=sample.op)},
        filters={"op": sample.op, "dtype": sample.dtype, "phase": sample.phase, "direction": sample.direction},
        facets=("op", "dtype", "phase", "direction"),
    )


def needing(sweep_id: int) -> Listing:
    """Executed workloads and the operators each needs that the device did not run itself."""
    need, workload = tt.op_need.c, t.workload.c
    rows = (
        select(workload.hash, need.op, workload.family, workload.class_name, need.entries, need.downloads, need.calls)
        .select_from(tt.op_need)
        .join(t.workload, workload.id == need.workload_id)
        .where(need.sweep_id == sweep_id)
    )
    return Listing(
        name="needing",
        rows=rows,
        key=need.op.concat(":").concat(workload.hash),
        sorts={"entries": Sort(column=need.entries, descending=True), "op": Sort(column=need.op)},
        filters={"op": need.op, "family": workload.family},
        facets=("op", "family"),
    )
