"""Findings -> standings: where every group of the plan stands, and how far inheritance can be trusted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from neuronqa.domain.case import Variant
from neuronqa.domain.ladder import EntryState, Evidence, Findings, entry_state
from neuronqa.domain.outcome import Check, Kind, Outcome
from neuronqa.domain.plan import PlannedGroup
from neuronqa.domain.policy import Policy
from neuronqa.sweep.policies import Narrowing

CONFIDENCE = 0.95


def narrowed_findings(policy: Policy, narrowing: Narrowing) -> dict[tuple[Variant, Check], Outcome]:
    """The findings every workload starts from: what a person chose not to run."""
    said = Outcome(Kind.NOT_RUN_NARROWED)
    return {
        (variant, check): said
        for rung in policy.rungs
        for variant, check in policy.asks(rung)
        if not narrowing.keeps(variant.mode, variant.dtype)
    }


def settle(
    policy: Policy,
    groups: Iterable[PlannedGroup],
    findings: Mapping[str, Findings],
    representative: Mapping[str, str],
    narrowing: Narrowing,
    unsaid: Outcome,
) -> dict[int, EntryState]:
    """Place every group: by its own workload where that ran, else by its kernel key's representative.

    `representative` maps a kernel key to the hash of the workload that runs for it.
    """
    skipped = narrowed_findings(policy, narrowing)
    states = {}
    for planned in groups:
        own = findings.get(planned.group.workload)
        lent = findings.get(representative.get(planned.group.kernel_key, ""))
        evidence = Evidence.EXECUTED if own else Evidence.INHERITED if lent else Evidence.NONE
        known = {**skipped, **(own or lent or {})}
        states[planned.id] = entry_state(policy, planned.group.listing, known, evidence, unsaid)
    return states


@dataclass(frozen=True, kw_only=True)
class Audit:
    """Inherited entries that were executed after all, and how many of them disagreed with what they would inherit."""

    drawn: int
    disagreed: int

    @property
    def bound(self) -> float:
        """95 % upper bound (Clopper-Pearson) on how often an inherited verdict is wrong; 1.0 when none was drawn."""
        return upper_bound(self.disagreed, self.drawn)


def upper_bound(hits: int, draws: int, confidence: float = CONFIDENCE) -> float:
    """One-sided Clopper-Pearson bound: the proportion at which so few as `hits` in `draws` becomes unlikely."""
    if draws == 0 or hits >= draws:
        return 1.0
    low, high = hits / draws, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _at_most(hits, draws, middle) > 1.0 - confidence:
            low = middle
        else:
            high = middle
    return high


def _at_most(hits: int, draws: int, p: float) -> float:
    """P(X <= hits) for X ~ Binomial(draws, p)."""
    if p >= 1.0:
        return 0.0
    logs = (
        math.lgamma(draws + 1)
        - math.lgamma(k + 1)
        - math.lgamma(draws - k + 1)
        + (k * math.log(p) if k else 0.0)
        + (draws - k) * math.log1p(-p)
        for k in range(hits + 1)
    )
    return math.fsum(math.exp(value) for value in logs)


def audit(
    policy: Policy,
    groups: Iterable[PlannedGroup],
    audited: Mapping[str, Findings],
    findings: Mapping[str, Findings],
    representative: Mapping[str, str],
) -> Audit:
    """Compare each audited workload's state with the one its group would inherit, rung by rung."""
    drawn = disagreed = 0
    seen: set[str] = set()
    for planned in groups:
        workload = planned.group.workload
        lent = findings.get(representative.get(planned.group.kernel_key, ""))
        if workload in seen or workload not in audited or lent is None:
            continue
        seen.add(workload)
        own = entry_state(policy, planned.group.listing, audited[workload], Evidence.EXECUTED)
        inherited = entry_state(policy, planned.group.listing, lent, Evidence.INHERITED)
        drawn += 1
        disagreed += [s.standing for s in own.rungs] != [s.standing for s in inherited.rungs]
    return Audit(drawn=drawn, disagreed=disagreed)
