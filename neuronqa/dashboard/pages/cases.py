"""Cases: failing outcomes, and single attempts with everything that was seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neuronqa.dashboard import charts
from neuronqa.dashboard.pages import columns
from neuronqa.dashboard.view import Scope, View, listed
from neuronqa.db import queries
from neuronqa.db.browse import cases, workloads
from neuronqa.domain.identity import relaxed
from neuronqa.domain.outcome import Check, Kind, Outcome


def page(scope: Scope) -> View:
    caption = "Failing outcomes, in the order they were found"
    table = scope.table(cases.listing(scope.db, scope.sweep), columns.CASES, caption)
    return View(template="listing.html", title="Cases", data=listed(table), table=table)


def detail(scope: Scope, attempt: int) -> View:
    """One attempt: what every check said of it and why, its curves, its operators, how it ended."""
    row = cases.attempt(scope.db, attempt)
    record = queries.blob(scope.db, row.blob_id)
    order = list(Check)
    found = sorted(workloads.results(scope.db, [row.id])[row.id], key=lambda one: order.index(Check(one.check)))
    results = [
        {
            "check": one.check,
            "outcome": str(Outcome(Kind(one.kind), one.detail)),
            "kind": one.kind,
            "measure": one.measure,
            "evidence": queries.blob(scope.db, one.blob_id),
        }
        for one in found
    ]
    facts = {
        "attempt": row.id,
        "sweep": row.sweep,
        "kind": row.kind,
        "variant": row.variant,
        "workload": row.workload,
        "family": row.family,
        "class_name": row.class_name,
        "case": row.case_hash,
        "started": row.started,
        "wall_s": row.wall_s,
        "cpu_s": row.cpu_s,
        "peak_rss": row.peak_rss,
        "node": row.node,
        "worker": row.worker,
        "probe_of": row.probe_of,
    }
    return View(
        template="case.html",
        title=f"Attempt {row.id}",
        data={"attempt": facts, "results": results, "record": record},
        show={"attempt": facts, "results": results, "record": record, "plots": _plots(record, results)},
    )


def _plots(record: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> list[charts.Chart]:
    """Only those there is something to draw of."""
    parity: Mapping[str, Any] = next((one["evidence"] for one in results if one["check"] == Check.PARITY.value), {})
    plain = relaxed(record)
    return [
        plot
        for plot in (charts.curve(plain), charts.gradient_norm(plain), charts.errors(parity), charts.fallbacks(record))
        if plot is not None
    ]
