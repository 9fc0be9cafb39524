"""Two sweeps side by side."""

from __future__ import annotations

from typing import Any, Final

from neuronqa.dashboard.pages import columns
from neuronqa.dashboard.view import Column, Form, Record, Scope, View, listed, to
from neuronqa.db import clusters, queries
from neuronqa.db.browse import comparison, sweeps
from neuronqa.db.queries import SweepRow
from neuronqa.domain.change import Change


def _workload(row: Record, sweep: str) -> str:
    return to("/workloads", "workload")(row, sweep) if row["workload"] else ""


CHANGES: Final = (
    Column(name="change", title="change", form=Form.OUTCOME),
    columns.FAMILY,
    Column(name="class_name", title="class", href=_workload),
    Column(name="before", title="before", form=Form.OUTCOME),
    Column(name="before_detail", title="detail", form=Form.MONO),
    Column(name="after", title="now", form=Form.OUTCOME),
    Column(name="after_detail", title="detail", form=Form.MONO),
    columns.ENTRIES,
    columns.DOWNLOADS,
)


def page(scope: Scope) -> View:
    """`base` against `head` (the newest by default, against the one before it of the same plan)."""
    head = queries.sweep(scope.db, scope.address.value("head") or scope.address.value("sweep") or None)
    base = _base(scope, head)
    untriaged = [row.name for row in (base, head) if row and clusters.triaged(scope.db, row.id) is None]
    if base is None or base.plan_id != head.plan_id or untriaged:
        counted: dict[Change, int] = {}
        table = None
    else:
        counted = comparison.counts(scope.db, base, head)
        table = scope.table(comparison.listing(base, head), CHANGES, "Groups of entries that changed")
    return View(
        template="compare.html",
        title="Compare",
        data={
            "base": _side(base),
            "head": _side(head),
            "comparable": table is not None,
            "entries": {change.value: n for change, n in counted.items()},
            "changes": listed(table) if table else None,
        },
        show={
            "base": base,
            "head": head,
            "untriaged": untriaged,
            "counted": counted,
            "against": sweeps.names(scope.db),
        },
        table=table,
    )


def _base(scope: Scope, head: SweepRow) -> SweepRow | None:
    named = scope.address.value("base") or sweeps.before(scope.db, head)
    return queries.sweep(scope.db, named) if named else None


def _side(row: SweepRow | None) -> dict[str, Any] | None:
    return None if row is None else {"sweep": row.name, "build": row.build_hash, "state": row.state}
