"""Workloads: what is executed, and for whom."""

from __future__ import annotations

from typing import Any

from neuronqa.dashboard.address import Address
from neuronqa.dashboard.pages import columns, matrix
from neuronqa.dashboard.view import Scope, View, listed
from neuronqa.db.browse import cases, models, workloads


def page(scope: Scope) -> View:
    caption = "Workloads of the plan, those first that most entries share"
    table = scope.table(workloads.listing(scope.sweep), columns.WORKLOADS, caption)
    return View(template="listing.html", title="Workloads", data=listed(table), table=table)


def detail(scope: Scope, name: str) -> View:
    """One workload: its spec, every attempt at it, what failed, and the models that stand by it."""
    row, sweep = workloads.workload(scope.db, name), scope.sweep
    attempts = workloads.attempts(scope.db, sweep.id, row.id)
    of_it = (("workload", row.hash), ("sweep", sweep.name))
    failed = scope.part(cases.listing(scope.db, sweep), columns.CASES, "What failed", Address("/cases", of_it))
    kin = scope.part(models.listing(sweep), columns.MODELS, "Models of its kernel key", Address("/models", of_it))
    facts: dict[str, Any] = {"hash": row.hash, "kind": row.kind, "family": row.family, "class_name": row.class_name}
    return View(
        template="workload.html",
        title=f"{row.class_name or row.family} {row.hash[:12]}",
        data={
            "workload": {**facts, "spec": row.spec},
            "attempts": [
                {"attempt": one.id, "variant": one.variant, "kind": one.kind, "wall_s": one.wall_s, "cpu_s": one.cpu_s}
                for one in attempts
            ],
            "failed": listed(failed),
            "models": listed(kin),
        },
        show={
            "workload": row,
            "attempts": attempts,
            "failed": failed,
            "models": kin,
            "matrix": matrix.of_workload(scope, name),
        },
    )
