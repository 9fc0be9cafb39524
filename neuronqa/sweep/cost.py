"""What cases cost, learnt from every attempt the database remembers."""

from __future__ import annotations

from sqlalchemy import Connection

from neuronqa.db import queries
from neuronqa.domain.case import Variant
from neuronqa.sweep.schedule import CostModel


def learn(db: Connection) -> CostModel:
    """Mean CPU seconds per (family, variant) and per variant over the counting attempts of all sweeps."""
    totals: dict[Variant, list[float]] = {}
    by_family = {}
    for family, text, attempts, cpu_s in queries.costs(db):
        variant = Variant.parse(text)
        by_family[family, variant] = cpu_s / attempts
        total = totals.setdefault(variant, [0.0, 0.0])
        total[0] += attempts
        total[1] += cpu_s
    return CostModel(by_family=by_family, by_variant={v: cpu / n for v, (n, cpu) in totals.items()})
