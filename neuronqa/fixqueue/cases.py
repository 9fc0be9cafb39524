"""The cases of an item: those an agent is shown, those kept back, and those that pass and must go on passing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, exists, select

from neuronqa.db import clusters, queries
from neuronqa.db import tables as t
from neuronqa.db.clusters import Failing
from neuronqa.db.fixes import ItemRow
from neuronqa.domain.outcome import Kind, Standing
from neuronqa.fixqueue.verdict import CaseRef, Target
from neuronqa.triage.repro import plainness

SHOWN: Final = 8
"""Cases of a cluster an agent is shown at most; of few, half."""
MEMBERS: Final = 400
PASSING: Final = 120
LOOKED_AT: Final = 600
_PASS: Final = sorted(kind.value for kind in Kind if kind.rules.standing is Standing.PASS)


def target(db: Connection, item: ItemRow) -> Target:
    """What a submission for this item is measured against."""
    shown, hidden = members(db, item.sweep_id, item.cluster_id)
    one = clusters.by_ids(db, [item.cluster_id])[item.cluster_id]
    return Target(
        key=one.key,
        ops=(item.operator,),
        members=references(db, shown),
        siblings=references(db, hidden),
        passing=passing(db, item.sweep_id, item.operator),
    )


def members(db: Connection, sweep_id: int, cluster_id: int) -> tuple[list[list[Failing]], list[list[Failing]]]:
    """The cases of a cluster with what they fail by: those that are shown, and those that are not."""
    found: dict[int, list[Failing]] = {}
    for one in clusters.failing(db, sweep_id, cluster_id, limit=MEMBERS, words=False):
        if not one.symptom:
            found.setdefault(one.case_id, []).append(one)
    ordered = sorted(found.values(), key=lambda some: plainness(some[0]))
    shown = min(SHOWN, max(1, len(ordered) // 2))
    return ordered[:shown], ordered[shown:]


def references(db: Connection, some: Sequence[Sequence[Failing]]) -> tuple[CaseRef, ...]:
    """The same cases, to be run without the database."""
    known = queries.workloads(db, [case[0].workload for case in some])
    return tuple(
        CaseRef(
            workload=known[case[0].workload],
            variant=case[0].variant,
            outcomes=tuple(dict.fromkeys(str(one.outcome) for one in case)),
            name=f"{case[0].class_name} {case[0].variant}",
        )
        for case in some
    )


def passing(db: Connection, sweep_id: int, operator: str) -> tuple[CaseRef, ...]:
    """Cases of a sweep whose every check passed: those that execute the operator first, one a workload and variant."""
    attempt, result = t.attempt.c, t.result.c
    wrong = exists().where(result.attempt_id == attempt.id, result.kind.not_in(_PASS))
    some = exists().where(result.attempt_id == attempt.id)
    query = (
        select(t.workload.c.hash, t.case.c.variant, attempt.blob_id)
        .join(t.case, t.case.c.id == attempt.case_id)
        .join(t.workload, t.workload.c.id == t.case.c.workload_id)
        .where(queries.valid(sweep_id, queries.COUNTING), some, ~wrong)
        .order_by(t.case.c.hash)
        .limit(LOOKED_AT)
    )
    uses: dict[tuple[str, str], bool] = {}
    for row in db.execute(query).all():
        executed = queries.blob(db, row.blob_id).get("ops", ())
        uses[row.hash, row.variant] = any(use["op"] == operator for use in executed)
    chosen = sorted(uses, key=lambda one: (not uses[one], one))[:PASSING]
    known = queries.workloads(db, sorted({hash_ for hash_, _ in chosen}))
    return tuple(CaseRef(workload=known[hash_], variant=queries.variant(variant)) for hash_, variant in chosen)
