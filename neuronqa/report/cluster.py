"""One cluster for whoever looks into it: what made its keys, the cases it holds, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row

from neuronqa.db import clusters, queries
from neuronqa.db.clusters import ClusterRow, Event, Failing, Waiver
from neuronqa.domain.identity import strict

CASES: Final = 50


@dataclass(frozen=True, kw_only=True)
class ClusterPage:
    """Everything that is known of a cluster, in the newest sweep that saw it."""

    cluster: ClusterRow
    sweep: str
    keys: Sequence[Row[Any]]
    """Rules with their causes: part, value, key, kind, detail, parts."""
    history: Sequence[Row[Any]]
    journal: Sequence[Event]
    waivers: Sequence[Waiver]
    cases: Sequence[Failing]
    """Worst first, the first :data:`CASES`."""


def cluster_page(db: Connection, named: str) -> ClusterPage:
    """Raises BadInput for a cluster there is not."""
    one = clusters.cluster(db, named)
    return ClusterPage(
        cluster=one,
        sweep=queries.sweep_name(db, one.seen_sweep_id),
        keys=clusters.explanations(db, one.id),
        history=clusters.history(db, one.id),
        journal=clusters.journal(db, one.id),
        waivers=clusters.waivers(db, 0.0, one.id),
        cases=clusters.worst(db, one.seen_sweep_id, one.id, CASES),
    )


def cluster_json(page: ClusterPage) -> dict[str, Any]:
    """The page as JSON (schema_version 1)."""
    one = page.cluster
    return {
        "schema_version": 1,
        "cluster": one.id,
        "lane": one.lane,
        "key": one.key,
        "state": one.state.value,
        "version": one.version,
        "check": one.check.value,
        "rung": one.rung.value,
        "outcome": str(one.outcome),
        "at_fault": one.at_fault.value,
        "assignee": one.assignee,
        "merged_into": one.merged_into,
        "sweep": page.sweep,
        "keys": [
            {"key": row.key, "part": row.part, "value": row.value, "kind": row.kind, "parts": row.parts}
            for row in page.keys
        ],
        "history": [
            {
                "sweep": row.name,
                "build": row.build,
                "state": row.state,
                "cases": row.cases,
                "entries": row.entries,
                "place": row.place,
            }
            for row in page.history
        ],
        "journal": [strict(asdict(event)) for event in page.journal],
        "waivers": [strict(asdict(waiver)) for waiver in page.waivers],
        "cases": [case_json(case) for case in page.cases],
    }


def case_json(case: Failing) -> dict[str, Any]:
    """One failing case as JSON."""
    return {
        "case": case.case,
        "attempt": case.attempt,
        "kind": case.attempt_kind.value,
        "workload": case.workload,
        "family": case.family,
        "class_name": case.class_name,
        "variant": str(case.variant),
        "check": case.check.value,
        "outcome": str(case.outcome),
        "symptom": case.symptom,
        "measure": case.measure,
        "words": case.words,
    }
