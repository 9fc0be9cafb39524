"""Taking over what earlier sweeps found and nothing has touched since, and executing a few of these cases anyway."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine

import neuronqa
from neuronqa.db import reuse as past
from neuronqa.db.queries import SweepRow
from neuronqa.db.reuse import Executed
from neuronqa.db.store import Store
from neuronqa.domain.build import BuildVector
from neuronqa.domain.identity import content_hash
from neuronqa.domain.policy import Policy
from neuronqa.domain.reuse import Change, Past, Spared, change, spared
from neuronqa.sweep.answers import source_sha256

DRAWN_SHARE: Final = 0.005
DRAWN_LIMIT: Final = 20
"""Workloads."""
NAMED: Final = 10
JUDGING: Final = ("checks", "domain", "worker", "workload")
"""The packages that make and judge what a verdict says."""


def terms(policy: Policy) -> str:
    """Names how a case is executed and judged, the device apart: thresholds, limits, and our own code."""
    package = Path(neuronqa.__file__).parent
    asked = policy.to_json()
    code = [source_sha256(package / name) for name in JUDGING]
    return content_hash([asked["thresholds"], asked["limits"], code])


@dataclass
class Reuse:
    """How many cases an earlier sweep had executed, by what became of them."""

    cases: Counter[Spared] = field(default_factory=Counter)
    audits: int = 0

    def lines(self) -> Iterator[str]:
        """What a person is told, the largest number first."""
        for why, n in self.cases.most_common():
            yield f"{n:,} cases {'spared' if why.holds else 'executed again'}: {why.value}"


def carry_over(engine: Engine, store: Store, sweep: SweepRow, now: BuildVector) -> Reuse:
    """Look through earlier sweeps, newest first, and store as this sweep's own what still holds."""
    reuse = Reuse()
    again: dict[int, Spared] = {}
    generator = random.Random(f"{sweep.seed} {sweep.name}")
    with engine.connect() as db:
        before = past.earlier(db, sweep.id)
    left = DRAWN_LIMIT
    for place, one in enumerate(before):
        changed = change(one.build, now)
        if changed.everything and place > 0:  # Of another device: the newest says why, the others say the same.
            continue
        with engine.connect() as db:
            holds = _holding(db, past.records_of(db, sweep.id, one.id), changed, reuse.cases, again)
            audits = _holding(db, past.audits_of(db, sweep.id, sweep.plan_id, one.id), changed, Counter(), {})
        drawn = _draw(holds, generator, left)
        left -= len(drawn)
        kept = [executed for executed in holds if executed.workload not in drawn]
        reuse.cases[Spared.DRAWN] += len(holds) - len(kept)
        reuse.audits += len(audits)
        store.carry(
            sweep.id,
            [executed.attempt for executed in chain(kept, audits)],
            [executed.attempt for executed in holds if executed.workload in drawn],
        )
    reuse.cases.update(again.values())
    return reuse


def _holding(
    db: Connection,
    found: Iterable[Executed],
    changed: Change,
    counted: Counter[Spared],
    again: dict[int, Spared],
) -> list[Executed]:
    """Those whose verdict still holds; the others are noted in `again`, by case, with the first reason there was."""
    holding = []
    for executed in found:
        operators = past.operators(db, executed) if changed.operators else frozenset()
        why = spared(
            Past(
                variant=executed.variant,
                kinds=executed.kinds,
                operators=operators,
                complete=executed.ops_complete,
            ),
            changed,
        )
        if not why.holds:
            again.setdefault(executed.case, why)
            continue
        again.pop(executed.case, None)
        counted[why] += 1
        holding.append(executed)
    return holding


def _draw(holds: Iterable[Executed], generator: random.Random, limit: int) -> frozenset[int]:
    """Workloads to execute anyway: a two-hundredth of them, at least one."""
    workloads = sorted({executed.workload for executed in holds})
    if not workloads:
        return frozenset()
    return frozenset(generator.sample(workloads, min(limit, max(1, round(DRAWN_SHARE * len(workloads))))))


def reuse_summary(db: Connection, sweep_id: int) -> Mapping[str, Any]:
    """How much a sweep took over, and what the drawn cases came to once they were executed."""
    compared = past.compared(db, sweep_id)
    other = [f"{one.workload} {one.variant}" for one in compared if not one.agreed]
    return {
        "spared": past.spared_cases(db, sweep_id),
        "drawn": len(compared),
        "disagreed": len(other),
        "disagreeing": other[:NAMED],
    }
