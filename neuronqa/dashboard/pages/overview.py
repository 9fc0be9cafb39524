"""The first screen: what this rests on, the ladder, what to fix next, and what is new."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Row

from neuronqa.dashboard import charts
from neuronqa.dashboard.address import Address
from neuronqa.dashboard.pages.clusters import CLUSTERS
from neuronqa.dashboard.view import Scope, Table, View, listed
from neuronqa.db import clusters
from neuronqa.db.browse import clusters as browse_clusters
from neuronqa.db.browse import ladder, sweeps
from neuronqa.db.browse.ladder import Lane
from neuronqa.db.queries import SweepRow
from neuronqa.domain.ladder import Gate, Weight
from neuronqa.domain.outcome import Rung
from neuronqa.domain.policy import Policy
from neuronqa.errors import BadInput
from neuronqa.report.value import Controls

FAMILIES: Final = 30
SHOWN: Final = 8
SHADES: Final = 5


def page(scope: Scope) -> View:
    """The sweep at a glance. One that still runs shows how far it is, and no rate."""
    row = scope.sweep
    weight = _weight(scope.address.value("weight"))
    found = ladder.lanes(scope.db, row, weight)
    lane = _lane(found, scope.address.value("lane"))
    states = ladder.states(scope.db, row.id)
    heat = heat_map(ladder.by_family(scope.db, row.id, FAMILIES))
    trust = trust_of(row)
    honest = found[0].gates[-1] if found else None
    triaged = clusters.triaged(scope.db, row.id)
    everything = Address("/clusters", (("sweep", row.name),))
    following = _clusters(scope, everything, "Fix next")
    fresh = _clusters(scope, everything.toggle("state", "new").toggle("state", "regressed"), "New and regressed")
    return View(
        template="overview.html",
        title=f"Sweep {row.name}",
        data={
            "sweep": row.name,
            "state": row.state,
            "trust": trust,
            "weight": weight.value,
            "lanes": {one.name or "all": [_gate_json(gate) for gate in one.gates] for one in found},
            "states": [dict(one._mapping) for one in states],
            "fix_next": listed(following),
            "new_or_regressed": listed(fresh),
            "grade": triaged.grade if triaged else None,
            "unlock": triaged.unlock if triaged else None,
            "heat_map": {family.name: family.missed for family in heat},
        },
        show={
            "trust": trust,
            "controls": Controls(**trust["controls"]) if trust["controls"] else None,
            "weight": weight,
            "lanes": found,
            "lane": lane,
            "honest": honest,
            "withheld": (row.summary or {}).get("withheld", {}),
            "progress": sweeps.progress(scope.db, row),
            "states": states,
            "heat": heat,
            "following": following,
            "fresh": fresh,
            "triaged": triaged,
            "unlock": charts.unlock(triaged.unlock["curve"]) if triaged else None,
            "rungs": [rung.value for rung in Policy.from_json(row.policy).rungs[1:]],
            "rate": _rates(scope, row),
        },
    )


NEXT: Final = tuple(
    column
    for column in CLUSTERS
    if column.name in ("place", "outcome", "detail", "state", "entries", "sole_entries", "unlocked_entries")
)


def _clusters(scope: Scope, whole: Address, caption: str) -> Table:
    return scope.part(browse_clusters.listing(scope.sweep), NEXT, caption, whole, SHOWN)


def _weight(text: str) -> Weight:
    try:
        return Weight(text or Weight.ENTRIES)
    except ValueError as error:
        raise BadInput(f"there is no weight {text!r}", hint="entries or downloads") from error


def _lane(found: list[Lane], name: str) -> Lane | None:
    if not found:
        return None
    for lane in found:
        if lane.name == name:
            return lane
    raise BadInput(f"the policy has no lane {name!r}")


def trust_of(row: SweepRow) -> dict[str, Any]:
    """What the rates of a sweep rest on."""
    summary = row.summary or {}
    audit = summary.get("audit", {})
    return {
        "catalog": row.catalog.name,
        "source": row.catalog.source.value,
        "registered": row.catalog.registered,
        "controls": summary.get("controls"),
        "audit_drawn": audit.get("drawn"),
        "audit_disagreed": audit.get("disagreed"),
        "audit_bound": audit.get("bound"),
        "device": row.device,
        "profile": row.profile,
        "build": row.build_hash,
        "policy": row.policy_name,
        "partial": bool(row.options.get("mode") or row.options.get("dtype")),
        "started": row.started,
        "wall_s": row.wall_s,
    }


@dataclass(frozen=True, kw_only=True)
class Family:
    """A row of the heat map."""

    name: str
    entries: int
    green: int
    missed: Mapping[str, int]
    """Entries by the rung they miss, those that nothing was run for apart."""
    not_run: int

    def shade(self, rung: str) -> int:
        """0 for none, up to :data:`SHADES` for nearly all."""
        share = self.missed.get(rung, 0) / max(1, self.entries)
        return 0 if not share else min(SHADES, 1 + int(share * SHADES))


def heat_map(counted: Iterable[Row[Any]]) -> list[Family]:
    """Architectures by entries, and the rungs they miss."""
    sums: dict[str, dict[str, int]] = {}
    for one in counted:
        ran = one.evidence != "none" or one.missed in ("", Rung.ELIGIBLE.value)
        cells = sums.setdefault(one.family, {})
        name = one.missed if ran else "not run"
        cells[name] = cells.get(name, 0) + int(one.entries)
    made = [
        Family(
            name=family,
            entries=sum(cells.values()),
            green=cells.get("", 0),
            missed={rung: n for rung, n in cells.items() if rung not in ("", "not run")},
            not_run=cells.get("not run", 0),
        )
        for family, cells in sums.items()
    ]
    return sorted(made, key=lambda family: (-family.entries, family.name))


def _gate_json(gate: Gate) -> dict[str, Any]:
    return {
        "rung": gate.rung.value,
        "passed": gate.passed,
        "failed": gate.failed,
        "not_run": gate.not_run,
        "low": gate.low,
        "high": gate.high,
    }


def _rates(scope: Scope, row: SweepRow) -> charts.Chart | None:
    points = []
    for one in sweeps.headlines(scope.db, row):
        link = str(Address("/", (("sweep", one.name),)))
        points.append((one.name, one.low, one.high, link))
    return charts.rates(points)
