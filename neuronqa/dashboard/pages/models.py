"""Models: every registered entry, and one of them."""

from __future__ import annotations

from typing import Any

from neuronqa.dashboard.address import Address
from neuronqa.dashboard.pages import columns, matrix
from neuronqa.dashboard.view import Scope, View, listed
from neuronqa.db import clusters
from neuronqa.db.browse import cases, models
from neuronqa.db.clusters import ClusterCount


def page(scope: Scope) -> View:
    table = scope.table(models.listing(scope.sweep), columns.MODELS, "Registered models, most downloaded first")
    return View(template="listing.html", title="Models", data=listed(table), table=table)


def detail(scope: Scope, rank: int) -> View:
    """One entry: where it stands, whose run says so, and everything that blocks it."""
    found = models.model(scope.db, scope.sweep, rank)
    whole = Address("/cases", (("workload", found.by), ("sweep", scope.sweep.name)))
    table = scope.part(cases.listing(scope.db, scope.sweep), columns.CASES, "What failed", whole) if found.by else None
    blockers = clusters.blocking(scope.db, scope.sweep.id, found.group.id)
    own = bool(found.by) and found.by == found.group.hash
    facts: dict[str, Any] = {
        "rank": found.entry.rank,
        "name": found.entry.name,
        "revision": found.entry.revision,
        "downloads": found.entry.downloads,
        "task": found.entry.task,
        "library": found.entry.library,
        "config": found.entry.config,
        "family": found.group.model_type,
        "class_name": found.group.class_name,
        "listing": found.group.listing,
        "workload": found.group.hash,
        "shared_by": found.group.entries,
        "state": found.standing.label if found.standing else "not settled yet",
        "detail": found.standing.detail if found.standing else "",
        "evidence": found.standing.evidence if found.standing else "none",
        "stands_by": found.by,
    }
    return View(
        template="model.html",
        title=found.entry.name,
        data={
            "model": facts,
            "blockers": [_blocker(one) for one in blockers],
            "failed": listed(table) if table else None,
        },
        show={
            "model": facts,
            "own": own,
            "blockers": blockers,
            "failed": table,
            "matrix": matrix.of_workload(scope, found.by),
        },
    )


def _blocker(one: ClusterCount) -> dict[str, Any]:
    return {
        "cluster": one.cluster.id,
        "outcome": str(one.cluster.outcome),
        "state": one.state.value,
        "entries": one.entries,
        "place": one.place,
    }
