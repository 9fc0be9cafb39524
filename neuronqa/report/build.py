"""Reading a sweep's rows into a Report."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence

from sqlalchemy import Connection, Engine

from neuronqa.db import cluster_store, clusters, queries
from neuronqa.db.clusters import ClusterCount
from neuronqa.db.engine import shown
from neuronqa.db.queries import SweepRow
from neuronqa.domain.ladder import EntryState, Evidence, Group, Weight, gates
from neuronqa.domain.outcome import Rung
from neuronqa.domain.policy import Policy
from neuronqa.errors import BadInput
from neuronqa.report import value
from neuronqa.report.beside import beside
from neuronqa.report.value import Controls, Report, Waived
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
    kept = clusters.triaged(db, row.id)
    by_entry = gates(policy, counted, disagreement=bound, withheld=frozenset(withheld))
    done = queries.work(db, row.id)
    states = value.count_states(counted)
    return Report(
        sweep=row.name,
        state=row.state,
        catalog=row.catalog,
        policy=policy,
        partial=bool(row.options.get("mode") or row.options.get("dtype")),
        device=row.device,
        profile=row.profile,
        build=row.build_hash,
        states=states,
        gates=by_entry,
        download_gates=gates(
            policy, counted, disagreement=bound, withheld=frozenset(withheld), weight=Weight.DOWNLOADS
        ),
        workload_gates=gates(policy, _once_each(settled), disagreement=bound, withheld=frozenset(withheld)),
        sampled=value.sampled(row.catalog, by_entry[-1]),
        withheld=withheld,
        at_fault=value.count_at_fault(counted),
        evidence=dict(evidence),
        flattering=value.flattering(policy, counted),
        controls=Controls(**summary["controls"]),
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
        waivers=tuple(_waived(db, found)),
        grade=kept.grade if kept else {},
        unlock=kept.unlock if kept else {},
        beside=beside(row.catalog, row.profile, by_entry, states),
    )


def _once_each(settled: Standings) -> list[Group]:
    """Every distinct workload once, its own run going before what it inherits."""
    best: dict[str, EntryState] = {}
    for planned in settled.groups:
        name, state = planned.group.workload, settled.states[planned.id]
        if name and (name not in best or state.evidence is Evidence.EXECUTED):
            best[name] = state
    return [Group(state, 1, 0) for state in best.values()]


def _waived(db: Connection, found: Sequence[ClusterCount]) -> Iterator[Waived]:
    blocked = {one.cluster.id: one for one in found}
    for waiver in clusters.waivers(db, time.time()):
        if waiver.cluster_id in blocked:
            one = blocked[waiver.cluster_id]
            yield Waived(
                cluster=waiver.cluster_id,
                outcome=str(one.cluster.outcome),
                owner=waiver.owner,
                reason=waiver.reason,
                expires=waiver.expires,
                entries=one.entries,
            )
