"""Clusters: root causes, what each blocks, what made its key, and what became of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from neuronqa.dashboard import charts
from neuronqa.dashboard.address import Address
from neuronqa.dashboard.pages import columns
from neuronqa.dashboard.view import Column, Form, Scope, View, listed, to
from neuronqa.db import clusters as kept
from neuronqa.db.browse import clusters, models
from neuronqa.db.clusters import ClusterRow, Event
from neuronqa.triage.actions import MARKS
from neuronqa.triage.attribution import SITES

CLUSTERS: Final = (
    Column(name="place", title="fix", form=Form.COUNT),
    Column(name="outcome", title="outcome", form=Form.OUTCOME, href=to("/clusters", "id")),
    Column(name="detail", title="detail", form=Form.MONO, href=to("/clusters", "id")),
    Column(name="state", title="state"),
    Column(name="rung", title="rung"),
    Column(name="at_fault", title="at fault"),
    Column(name="assignee", title="assignee"),
    Column(name="workloads", title="workloads", form=Form.COUNT),
    columns.ENTRIES,
    Column(name="sole_entries", title="by it alone", form=Form.COUNT),
    columns.DOWNLOADS,
    Column(name="unlocked_entries", title="green after", form=Form.COUNT),
)
MEMBERS: Final = (
    *columns.CASES[:5],
    Column(name="outcome", title="outcome", form=Form.OUTCOME),
    columns.DETAIL,
    Column(name="measure", title="how wrong", form=Form.RATIO),
)


def page(scope: Scope) -> View:
    caption = "Root causes in the order of fixes: each unlocks most of what those before it leave"
    table = scope.table(clusters.listing(scope.sweep), CLUSTERS, caption)
    return View(template="listing.html", title="Clusters", data=listed(table), table=table)


def members(scope: Scope) -> View:
    table = scope.table(clusters.members(scope.sweep), MEMBERS, "Cases by the cluster they fail by")
    return View(template="listing.html", title="Cases of clusters", data=listed(table), table=table)


def detail(scope: Scope, named: str) -> View:
    """One cluster."""
    sweep, cluster = scope.sweep, kept.cluster(scope.db, named)
    of_it = (("cluster", str(cluster.id)), ("sweep", sweep.name))
    cases = scope.part(clusters.members(sweep), MEMBERS, "Cases", Address("/members", of_it))
    blocked = scope.part(models.listing(sweep), columns.MODELS, "Models it blocks", Address("/models", of_it))
    history = [dict(one._mapping) for one in kept.history(scope.db, cluster.id)]
    journal = kept.journal(scope.db, cluster.id)
    parts = [dict(one._mapping) for one in kept.explanations(scope.db, cluster.id)]
    waivers = kept.waivers(scope.db, time.time(), cluster.id)
    facts = _facts(cluster)
    return View(
        template="cluster.html",
        title=str(cluster.outcome),
        data={
            "cluster": facts,
            "members": listed(cases),
            "models": listed(blocked),
            "history": history,
            "journal": [_event(one) for one in journal],
            "key": parts,
            "waivers": [{"owner": w.owner, "reason": w.reason, "expires": w.expires} for w in waivers],
        },
        show={
            "cluster": cluster,
            "members": cases,
            "models": blocked,
            "history": history,
            "journal": journal,
            "parts": parts,
            "waivers": waivers,
            "marks": MARKS,
            "sites": SITES,
            "now": next((one for one in history if one["name"] == sweep.name), None),
            "plot": charts.history([(one["name"], one["entries"]) for one in reversed(history)]),
        },
    )


def _facts(cluster: ClusterRow) -> dict[str, Any]:
    return {
        "id": cluster.id,
        "key": cluster.key,
        "outcome": str(cluster.outcome),
        "check": cluster.check.value,
        "rung": cluster.rung.value,
        "at_fault": cluster.at_fault.value,
        "state": cluster.state.value,
        "version": cluster.version,
        "assignee": cluster.assignee,
        "merged_into": cluster.merged_into,
        "lane": cluster.lane,
    }


def _event(one: Event) -> Mapping[str, Any]:
    return {
        "version": one.version,
        "at": one.at,
        "actor": one.actor,
        "action": one.action.value,
        "before": one.before.value if one.before else None,
        "after": one.after.value,
        "sweep": one.sweep,
        "reason": one.reason,
    }
