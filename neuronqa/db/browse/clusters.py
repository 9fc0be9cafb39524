"""Root causes of a sweep, and the cases that fail by them."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Text, cast, or_, select

from neuronqa.db import cluster_tables as ct
from neuronqa.db import tables as t
from neuronqa.db.browse.listing import Listing, Sort
from neuronqa.db.columns import escape
from neuronqa.db.queries import SweepRow


def listing(row: SweepRow) -> Listing:
    """Clusters in the order of fixes."""
    cluster, counted = ct.cluster.c, ct.cluster_count.c
    rows = (
        select(
            cluster.id,
            counted.place,
            cluster.key,
            cluster.kind.label("outcome"),
            cluster.detail,
            cluster.rung,
            cluster.at_fault,
            counted.state,
            cluster.assignee,
            counted.workloads,
            counted.entries,
            counted.sole_entries,
            counted.downloads,
            counted.unlocked_entries,
        )
        .select_from(ct.cluster_count)
        .join(ct.cluster, cluster.id == counted.cluster_id)
        .where(counted.sweep_id == row.id)
    )
    return Listing(
        name="clusters",
        rows=rows,
        key=cluster.id,
        sorts={
            "place": Sort(column=counted.place),
            "entries": Sort(column=counted.entries, descending=True),
            "sole_entries": Sort(column=counted.sole_entries, descending=True),
            "downloads": Sort(column=counted.downloads, descending=True),
            "workloads": Sort(column=counted.workloads, descending=True),
        },
        filters={
            "state": counted.state,
            "rung": cluster.rung,
            "outcome": cluster.kind,
            "at_fault": cluster.at_fault,
            "assignee": cluster.assignee,
        },
        search=_searched,
        facets=("state", "rung", "at_fault", "outcome", "assignee"),
    )


def _searched(text: str) -> ColumnElement[bool]:
    part = escape(text)
    cluster = ct.cluster.c
    return or_(*(one.contains(part, autoescape=True) for one in (cluster.detail, cluster.kind, cluster.key)))


def members(row: SweepRow) -> Listing:
    """Cases by the clusters they fail by."""
    member, case, workload, result = ct.membership.c, t.case.c, t.workload.c, t.result.c
    rows = (
        select(
            member.cluster_id.label("cluster"),
            member.attempt_id.label("attempt"),
            workload.family,
            workload.class_name,
            case.variant,
            member.check,
            member.kind.label("outcome"),
            member.detail,
            member.symptom,
            result.measure,
            workload.hash.label("workload"),
        )
        .select_from(ct.membership)
        .join(t.case, case.id == member.case_id)
        .join(t.workload, workload.id == case.workload_id)
        .outerjoin(t.result, (result.attempt_id == member.attempt_id) & (result.check == member.check))
        .where(member.sweep_id == row.id)
    )
    return Listing(
        name="members",
        rows=rows,
        key=member.check.concat(":").concat(cast(member.cluster_id, Text)),
        sorts={"case": Sort(column=member.case_id)},
        filters={
            "cluster": member.cluster_id,
            "check": member.check,
            "outcome": member.kind,
            "variant": case.variant,
            "family": workload.family,
            "symptom": member.symptom,
        },
        facets=("family", "variant", "check", "outcome"),
    )
