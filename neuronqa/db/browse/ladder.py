"""The ladder, the states and the heat map, from the tallies a sweep left when it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row, func, select

from neuronqa.db import tally_tables as tt
from neuronqa.db.queries import SweepRow
from neuronqa.domain.ladder import Evidence, Gate, Weight, gate
from neuronqa.domain.outcome import Rung, Standing
from neuronqa.domain.policy import Policy

EVERYTHING: Final = ""


@dataclass(frozen=True, kw_only=True)
class Lane:
    """The ladder of the whole policy, or of one variant of it."""

    name: str
    """Empty for the whole policy."""
    gates: tuple[Gate, ...]


def lanes(db: Connection, row: SweepRow, weight: Weight = Weight.ENTRIES) -> list[Lane]:
    """The whole policy's ladder first, then every variant's. Empty while the sweep has not been concluded."""
    names = [EVERYTHING, *(str(variant) for variant in Policy.from_json(row.policy).variants)]
    return _lanes(db, row, weight, names)


def whole(db: Connection, row: SweepRow) -> tuple[Gate, ...]:
    """The whole policy's ladder over entries alone."""
    found = _lanes(db, row, Weight.ENTRIES, [EVERYTHING])
    return found[0].gates if found else ()


def _lanes(db: Connection, row: SweepRow, weight: Weight, names: Sequence[str]) -> list[Lane]:
    tally = tt.rung_tally.c
    size = tally.entries if weight is Weight.ENTRIES else tally.downloads
    query = select(tally.lane, tally.rung, tally.evidence, tally.standing, size.label("n"))
    counted: dict[str, dict[tuple[Rung, Evidence, Standing], int]] = {}
    for one in db.execute(query.where(tally.sweep_id == row.id, tally.lane.in_(names))):
        counted.setdefault(one.lane, {})[Rung(one.rung), Evidence(one.evidence), Standing(one.standing)] = one.n
    summary = row.summary or {}
    floor = min((Rung(rung).height for rung in summary.get("withheld", {})), default=len(Rung))
    bound = float(summary.get("audit", {}).get("bound", 1.0))
    return [Lane(name=name, gates=_gates(counted[name], bound, floor)) for name in names if name in counted]


def _gates(counted: Mapping[tuple[Rung, Evidence, Standing], int], bound: float, floor: int) -> tuple[Gate, ...]:
    def total(rung: Rung, standing: Standing, *evidence: Evidence) -> int:
        return sum(counted.get((rung, one, standing), 0) for one in evidence)

    made = []
    for rung in sorted({rung for rung, _, _ in counted}, key=lambda rung: rung.height):
        vouched = rung.height <= Rung.ELIGIBLE.height
        inherited = 0 if vouched else total(rung, Standing.PASS, Evidence.INHERITED)
        executed = total(rung, Standing.PASS, *Evidence) - inherited
        failed, not_run = total(rung, Standing.FAIL, *Evidence), total(rung, Standing.NOT_RUN, *Evidence)
        made.append(gate(rung, executed, inherited, failed, not_run, disagreement=bound, withheld=rung.height >= floor))
    return tuple(made)


def states(db: Connection, sweep_id: int) -> list[Row[Any]]:
    """Entries by state: label, missed, entries, downloads; `green` first, then the most entries."""
    tally = tt.state_tally.c
    query = (
        select(
            tally.label,
            tally.missed,
            func.sum(tally.entries).label("entries"),
            func.sum(tally.downloads).label("downloads"),
        )
        .where(tally.sweep_id == sweep_id)
        .group_by(tally.label, tally.missed)
        .order_by(tally.label != "green", func.sum(tally.entries).desc(), tally.label)
    )
    return list(db.execute(query))


def by_family(db: Connection, sweep_id: int, limit: int) -> list[Row[Any]]:
    """Entries by architecture and missed rung (empty: green), of the `limit` architectures with most entries."""
    tally = tt.state_tally.c
    largest = (
        select(tally.family)
        .where(tally.sweep_id == sweep_id, tally.family != "")
        .group_by(tally.family)
        .order_by(func.sum(tally.entries).desc(), tally.family)
        .limit(limit)
        .subquery()
    )
    query = (
        select(tally.family, tally.missed, tally.evidence, func.sum(tally.entries).label("entries"))
        .join(largest, largest.c.family == tally.family)
        .where(tally.sweep_id == sweep_id)
        .group_by(tally.family, tally.missed, tally.evidence)
    )
    return list(db.execute(query))
