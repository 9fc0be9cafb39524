"""Reading a sweep's rows into a Report."""

from __future__ import annotations

from collections import Counter

from sqlalchemy import Connection, Engine

from neuronqa.db import cluster_store, queries
from neuronqa.db.engine import shown
from neuronqa.db.queries import SweepRow
from neuronqa.domain.ladder import Evidence, Weight, gates
from neuronqa.domain.outcome import Rung
from neuronqa.domain.policy import Policy
from neuronqa.errors import BadInput
from neuronqa.report import value
from neuronqa.report.value import Report
from neuronqa.sweep.standings import Standings, standings
from neuronqa.triage.analysis import preview
from neuronqa.triage.settle import triage


def build(db: Connection, name: str | None = None) -> Report:
    """The report of the sweep called `name`, or of the newest.

    Raises BadInput while the sweep has not been settled yet, InvariantBroken if its sums do not hold.
    """
    row = queries.sweep(db, name)
    if row.summary is None:
        raise BadInput(
            f"sweep {row.name} has not been settled yet",
            hint=f"wait for it, or `neuronqa sweep --resume {row.name}` if it was killed",
        )
    settled = standings(db, row)
    report = _report(db, row, settled)
    by_sql = queries.reconciliation(db, row.id, row.plan_id)
    value.reconcile(row.catalog.registered, report.states, (*report.gates,), by_sql)
    return report


def triaged(engine: Engine, name: str | None = None) -> int:
    """Triage a sweep and keep its report for whoever reads; returns how many clusters it has."""
    count = triage(engine, name)
    with engine.connect() as db:
        row = queries.sweep(db, name)
        report = build(db, row.name) if row.summary is not None else None
    if report is not None:
        with engine.begin() as db:
            cluster_store.keep_report(db, row.id, value.to_json(report))
    return count


def _report(db: Connection, row: SweepRow, settled: Standings) -> Report:
    policy = Policy.from_json(row.policy)
    summary = row.summary or {}
    weights = {planned.id: (planned.entries, planned.downloads) for planned in settled.groups}
    counted = value.grouped(weights, settled.states)
    withheld = {Rung(rung): why for rung, why in summary["withheld"].items()}
    bound = summary["audit"]["bound"]
    evidence: Counter[Evidence] = Counter()
    for group in counted:
        evidence[group.state.evidence] += group.entries
    found = preview(db, row, settled)
    done = queries.work(db, row.id)
    return Report(
        sweep=row.name,
        state=row.state,
        catalog=row.catalog,
        policy=policy,
        partial=bool(row.options.get("mode") or row.options.get("dtype")),
        device=row.device,
        profile=row.profile,
        build=row.build_hash,
        states=value.count_states(counted),
        gates=gates(policy, counted, disagreement=bound, withheld=frozenset(withheld)),
        download_gates=gates(
            policy, counted, disagreement=bound, withheld=frozenset(withheld), weight=Weight.DOWNLOADS
        ),
        withheld=withheld,
        at_fault=value.count_at_fault(counted),
        evidence=dict(evidence),
        flattering=value.flattering(policy, counted),
        controls_planted=summary["controls"]["planted"],
        controls_caught=summary["controls"]["caught"],
        audit_drawn=summary["audit"]["drawn"],
        audit_disagreed=summary["audit"]["disagreed"],
        audit_bound=bound,
        reused=summary["reuse"]["spared"],
        redone=summary["reuse"]["drawn"],
        redone_disagreed=summary["reuse"]["disagreed"],
        workloads=value.count_workloads(policy, summary["planned"], settled.findings, settled.inherited_workloads),
        attempts=done.attempts,
        busy_s=done.cpu_s,
        wall_s=row.wall_s,
        cores=row.cores,
        database=shown(db.engine.url),
        causes=tuple(found[: value.TOP_CAUSES]),
        cause_count=len(found),
    )
