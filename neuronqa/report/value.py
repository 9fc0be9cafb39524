"""The report as one value: everything a page, a text or a JSON file shows is in here, counted once."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from neuronqa.db.clusters import ClusterCount
from neuronqa.domain.case import Variant
from neuronqa.domain.catalog import CatalogInfo
from neuronqa.domain.ladder import EntryState, Evidence, Gate, Group
from neuronqa.domain.outcome import AtFault, Check, Outcome, Rung, Standing
from neuronqa.domain.policy import Policy
from neuronqa.errors import InvariantBroken
from neuronqa.report.beside import Beside

if TYPE_CHECKING:
    from neuronqa.report.verdict import Verdict

SCHEMA_VERSION: Final = 1
TOP_CAUSES: Final = 10


@dataclass(frozen=True, kw_only=True)
class Flattering:
    """A rate the field uses, from the same rows, named for what it leaves out."""

    name: str
    rate: float | None
    """None where its own denominator is empty."""
    leaves_out: str


@dataclass(frozen=True, kw_only=True)
class WorkloadCounts:
    """Workloads, not entries."""

    planned: int
    executed: int
    complete: int
    """Every required case of every rung ran."""
    inherited: int
    """Distinct workloads whose verdict was taken over from another with the same kernel key."""


@dataclass(frozen=True, kw_only=True)
class Waived:
    """A failure somebody put up with. Its entries are failing entries like any other."""

    cluster: int
    outcome: str
    owner: str
    reason: str
    expires: float
    """Unix time."""
    entries: int


@dataclass(frozen=True, kw_only=True)
class Interval:
    """What a random sample says of what it was drawn from: Wilson's score interval, 95 %."""

    of: str
    drawn: int
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Controls:
    """Planted faults and good twins of a sweep."""

    planted: int
    judged: int
    caught: int

    @property
    def missed(self) -> int:
        return self.judged - self.caught

    @property
    def unjudged(self) -> int:
        """Not reached before the end; what they would have guarded is withheld all the same."""
        return self.planted - self.judged

    def __str__(self) -> str:
        """`9 of 19 caught, 1 missed, 9 not judged`"""
        parts = [f"{self.caught} of {self.planted} caught"]
        parts += [f"{n} {what}" for n, what in ((self.missed, "missed"), (self.unjudged, "not judged")) if n]
        return ", ".join(parts)


@dataclass(frozen=True, kw_only=True)
class Report:
    """One sweep, judged."""

    sweep: str
    state: str
    catalog: CatalogInfo
    policy: Policy
    partial: bool
    """Did a person narrow the variants?"""
    device: str
    profile: str
    build: str
    states: Mapping[str, int]
    gates: tuple[Gate, ...]
    download_gates: tuple[Gate, ...]
    workload_gates: tuple[Gate, ...]
    """Over distinct workloads: what was executed, free of how often each is registered."""
    sampled: Interval | None
    """Where the catalog is a random draw of another: what the rate says of that one."""
    withheld: Mapping[Rung, str]
    at_fault: Mapping[AtFault, int]
    """Entries by who has to act on the outcome that keeps them off; entries that were not run are not in it."""
    evidence: Mapping[Evidence, int]
    flattering: tuple[Flattering, ...]
    controls: Controls
    audit_drawn: int
    audit_disagreed: int
    audit_bound: float
    reused: int
    """Cases whose verdict was taken over from an earlier sweep."""
    redone: int
    """Cases that could have been, and were executed anyway; those of them that then came to something else:"""
    redone_disagreed: int
    workloads: WorkloadCounts
    attempts: int
    busy_s: float
    wall_s: float
    cores: int
    database: str
    causes: tuple[ClusterCount, ...]
    cause_count: int
    waivers: tuple[Waived, ...]
    grade: Mapping[str, Any]
    """How well the planted faults were told apart (B-cubed); empty where the sweep has not been triaged."""
    unlock: Mapping[str, Any]
    """The curve of green entries along the order of fixes, and the best small sets."""
    beside: tuple[Beside, ...] = ()
    """What was published about this catalog, and what is here."""

    @property
    def honest(self) -> Gate:
        """The headline: the policy's highest rung over everything registered."""
        return self.gates[-1]


def reconcile(registered: int, states: Mapping[str, int], gates: Sequence[Gate], by_sql: Mapping[str, int]) -> None:
    """Assert that the report adds up. Raises InvariantBroken naming the sum that does not.

    One state per entry, states add up to what was registered, every rung's passed + failed + not run does too, and the
    database, asked to count the entries themselves, says the same.
    """
    total = sum(states.values())
    if total != registered:
        raise InvariantBroken(f"entry states add up to {total:,}, registered are {registered:,}", hint=_REPORT_IT)
    for gate in gates:
        if gate.passed + gate.failed + gate.not_run != registered:
            raise InvariantBroken(f"rung {gate.rung.value} does not add up to {registered:,}", hint=_REPORT_IT)
    if dict(by_sql) != {label: n for label, n in states.items() if n}:
        raise InvariantBroken("the database counts the entries differently", hint=_REPORT_IT)


_REPORT_IT: Final = "do not use this result; report it as a fault of neuronqa"


def count_states(groups: Sequence[Group]) -> dict[str, int]:
    """Entries by label, `green` first, then the lowest missed rung first."""
    counted: Counter[str] = Counter()
    height: dict[str, int] = {}
    for group in groups:
        counted[group.state.label] += group.entries
        missed = group.state.missed
        height[group.state.label] = -1 if missed is None else missed.rung.height
    return {label: counted[label] for label in sorted(counted, key=lambda label: (height[label], label))}


def count_at_fault(groups: Sequence[Group]) -> dict[AtFault, int]:
    """Entries that failed, by who is at fault for the outcome of the lowest failed rung."""
    counted: Counter[AtFault] = Counter()
    for group in groups:
        missed = group.state.missed
        if missed is not None and missed.standing is Standing.FAIL and missed.outcome is not None:
            counted[missed.outcome.rules.at_fault] += group.entries
    return {who: counted[who] for who in AtFault if counted[who]}


def flattering(policy: Policy, groups: Sequence[Group]) -> tuple[Flattering, ...]:
    """The rates other dashboards would print."""
    registered = sum(g.entries for g in groups)
    green = sum(g.entries for g in groups if g.state.green)
    ran = [g for g in groups if g.state.evidence is not Evidence.NONE]
    executed = [g for g in groups if g.state.evidence is Evidence.EXECUTED]
    survivors = [g for g in ran if g.state.standing_at(Rung.RUNS) is Standing.PASS]
    failed = sum(g.entries for g in groups if g.state.standing_at(policy.rungs[-1]) is Standing.FAIL)
    return (
        Flattering(
            name="did-not-raise",
            rate=_share(sum(g.entries for g in survivors), sum(g.entries for g in ran)),
            leaves_out="fallbacks, graph breaks, wrong numbers, training, and everything that was not run",
        ),
        Flattering(
            name="survivors-only",
            rate=_share(green, sum(g.entries for g in survivors)),
            leaves_out="whatever crashed, timed out, did not build or was not run",
        ),
        Flattering(
            name="executed-only",
            rate=_share(sum(g.entries for g in executed if g.state.green), sum(g.entries for g in executed)),
            leaves_out="whatever was not run or cannot be run, and what was only inherited",
        ),
        Flattering(
            name="skips-as-passes",
            rate=_share(registered - failed, registered),
            leaves_out="that nobody looked: not run is counted as passed",
        ),
    )


def count_workloads(
    policy: Policy,
    planned: int,
    findings: Mapping[str, Mapping[tuple[Variant, Check], Outcome]],
    inherited: int,
) -> WorkloadCounts:
    """`complete`: every (variant, check) the policy asks has an answer."""
    asked = [pair for rung in policy.rungs for pair in policy.asks(rung)]
    complete = sum(all(pair in found for pair in asked) for found in findings.values())
    return WorkloadCounts(planned=planned, executed=len(findings), complete=complete, inherited=inherited)


def grouped(weights: Mapping[int, tuple[int, int]], states: Mapping[int, EntryState]) -> list[Group]:
    """Groups as the ladder counts them; `weights` maps a group id to (entries, downloads)."""
    return [Group(states[id_], entries, downloads) for id_, (entries, downloads) in weights.items()]


_RANDOM: Final = re.compile(r"(?P<of>.*)\[random-(?P<n>\d+)@\d+\]", re.DOTALL)
_Z: Final = 1.959964


def sampled(catalog: CatalogInfo, honest: Gate) -> Interval | None:
    """Only a random draw speaks of what it was drawn from. Entries that were not run count as failed at the low end and
    as green at the high end, so that no choice of what to run can narrow it."""
    drawn = _RANDOM.fullmatch(catalog.name)
    if drawn is None or honest.low is None or honest.high is None or not honest.registered:
        return None
    low, _ = wilson(honest.low, honest.registered)
    _, high = wilson(honest.high, honest.registered)
    return Interval(of=drawn["of"], drawn=honest.registered, low=low, high=high)


def wilson(share: float, n: int) -> tuple[float, float]:
    """Wilson's score interval, 95 %, of a proportion seen in `n` draws. (Wilson 1927)"""
    centre = share + _Z * _Z / (2 * n)
    spread = _Z * math.sqrt(share * (1 - share) / n + _Z * _Z / (4 * n * n))
    scale = 1 + _Z * _Z / n
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def to_json(report: Report, verdict: Verdict | None = None) -> dict[str, Any]:
    """The report as the published JSON (schema_version 1; :mod:`neuronqa.report.schema`)."""
    return {
        "schema_version": SCHEMA_VERSION,
        "sweep": report.sweep,
        "state": report.state,
        "catalog": {
            "name": report.catalog.name,
            "source": report.catalog.source.value,
            "sha256": report.catalog.sha256,
            "registered": report.catalog.registered,
        },
        "policy": {"name": report.policy.name, "sha256": report.policy.sha256, "partial": report.partial},
        "device": {"name": report.device, "profile": report.profile, "build": report.build},
        "entries": dict(report.states),
        "gates": {gate.rung.value: _gate(gate, report.withheld) for gate in report.gates},
        "gates_by_downloads": {gate.rung.value: _gate(gate, report.withheld) for gate in report.download_gates},
        "gates_by_workloads": {gate.rung.value: _gate(gate, report.withheld) for gate in report.workload_gates},
        "sampled": asdict(report.sampled) if report.sampled else None,
        "at_fault": {who.value: n for who, n in report.at_fault.items()},
        "evidence": {kind.value: n for kind, n in report.evidence.items()},
        "flattering": {rate.name: rate.rate for rate in report.flattering},
        "controls": asdict(report.controls),
        "audit": {"drawn": report.audit_drawn, "disagreed": report.audit_disagreed, "bound": report.audit_bound},
        "reuse": {"spared": report.reused, "drawn": report.redone, "disagreed": report.redone_disagreed},
        "workloads": {
            "planned": report.workloads.planned,
            "executed": report.workloads.executed,
            "complete": report.workloads.complete,
            "inherited": report.workloads.inherited,
        },
        "attempts": report.attempts,
        "busy_s": round(report.busy_s, 3),
        "wall_s": round(report.wall_s, 3),
        "cores": report.cores,
        "database": report.database,
        "causes": [cause_json(cluster) for cluster in report.causes],
        "cause_count": report.cause_count,
        "waivers": [asdict(one) for one in report.waivers],
        "grade": dict(report.grade),
        "unlock": dict(report.unlock),
        "beside": [{**asdict(one), "error": one.error} for one in report.beside],
        "verdicts_are_for": VERDICTS_ARE_FOR,
        "verdict": verdict.to_json() if verdict else None,
    }


VERDICTS_ARE_FOR: Final = "shrunken, randomly initialised twins of the registered models"


def cause_json(one: ClusterCount) -> dict[str, Any]:
    """One root cause as JSON. `cluster` is null where the sweep has not been triaged."""
    return {
        "cluster": one.cluster.id if one.cluster.id > 0 else None,
        "key": one.cluster.key,
        "state": one.state.value,
        "check": one.cluster.check.value,
        "rung": one.cluster.rung.value,
        "outcome": str(one.cluster.outcome),
        "at_fault": one.cluster.at_fault.value,
        "assignee": one.cluster.assignee,
        "workloads": one.workloads,
        "cases": one.cases,
        "entries": one.entries,
        "downloads": one.downloads,
        "sole_entries": one.sole_entries,
        "place": one.place,
        "unlocked_entries": one.unlocked_entries,
        "example_attempt": one.example,
    }


def _gate(gate: Gate, withheld: Mapping[Rung, str]) -> dict[str, Any]:
    reason = next((why for rung, why in withheld.items() if rung.height <= gate.rung.height), "")
    body: dict[str, Any] = {
        "passed": gate.passed,
        "failed": gate.failed,
        "not_run": gate.not_run,
        "registered": gate.registered,
        "low": gate.low,
        "high": gate.high,
    }
    return {**body, "withheld": reason} if reason else body


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
