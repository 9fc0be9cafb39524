"""Asking the database what a gate and a baseline need: the other side, and what was not run."""

from __future__ import annotations

from collections import defaultdict

from sqlalchemy import Connection

from neuronqa.db import planning, queries
from neuronqa.domain.case import Variant
from neuronqa.report import export, verdict
from neuronqa.report.compare import compare
from neuronqa.report.value import Report
from neuronqa.report.verdict import Outstanding, Verdict
from neuronqa.sweep.cost import learn
from neuronqa.sweep.policies import GateExpression


def decide(db: Connection, report: Report, gate: str | None, baseline: str | None) -> Verdict:
    """Judge a report by a gate, a baseline (a sweep or a Parquet file), or both.

    Raises UsageError for a gate that does not parse, BadInput for a baseline that is none.
    """
    asked = GateExpression.parse(gate, report.policy) if gate is not None else None
    compared = None
    if baseline is not None:
        compared = compare(export.side(db, baseline), export.side(db, report.sweep))
    return verdict.judge(report, asked, compared, outstanding(db, report.sweep))


def outstanding(db: Connection, name: str) -> list[Outstanding]:
    """What the sweep planned and did not run, a workload each: the entries it stands for, and its expected cost."""
    row = queries.sweep(db, name)
    variants: dict[str, list[Variant]] = defaultdict(list)
    for one in planning.outstanding(db, row.id):
        variants[one.workload].append(one.variant)
    if not variants:
        return []
    cost = learn(db)
    ids = queries.workload_ids(db, list(variants))
    by_id = {candidate.workload_id: candidate for candidate in planning.candidates(db, row.plan_id)}
    return [
        Outstanding(
            workload=workload,
            entries=by_id[ids[workload]].entries,
            expected_s=cost.expect(by_id[ids[workload]].family, left),
        )
        for workload, left in variants.items()
        if ids[workload] in by_id
    ]
