"""Root causes: what failing outcomes share, which entries each blocks, and which it blocks alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from neuronqa.db.queries import Blocked
from neuronqa.domain.identity import content_hash
from neuronqa.domain.outcome import AtFault, Check, Outcome, Rung, rules
from neuronqa.domain.plan import PlannedGroup

KEY_VERSION: Final = "ck1"
KEY_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class Cause:
    """What makes two failures the same: the check, the kind and its detail, never a model, a frame or a line."""

    check: Check
    outcome: Outcome

    @property
    def key(self) -> str:
        """`ck1:` and 12 hex digits; the version changes whenever the rule does."""
        parts = {"check": self.check.value, "kind": self.outcome.kind.value, "detail": self.outcome.detail}
        return f"{KEY_VERSION}:{content_hash(parts)[:KEY_DIGITS]}"

    @property
    def rung(self) -> Rung:
        return rules(self.outcome.kind).rung or self.check.rung

    @property
    def at_fault(self) -> AtFault:
        return rules(self.outcome.kind).at_fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Everything one cause does to a sweep."""

    cause: Cause
    workloads: tuple[str, ...]
    attempts: int
    example: int
    """Attempt id."""
    entries: int
    """Entries whose verdict this cause stands in, inherited ones included."""
    downloads: int
    sole_entries: int
    """Of those, entries that nothing else blocks: fixing this cause alone would turn them."""


def clusters(blocked: Iterable[Blocked], groups: Sequence[PlannedGroup], evidence: Mapping[int, str]) -> list[Cluster]:
    """Clusters by entries blocked alone, then by entries, then by key.

    `evidence` maps a group's id to the hash of the workload whose findings it stands by (its own, or the one it
    inherits from); groups that nothing ran for are absent.
    """
    found: dict[Cause, list[Blocked]] = {}
    causes_of: dict[str, set[Cause]] = {}
    for one in blocked:
        cause = Cause(one.check, one.outcome)
        found.setdefault(cause, []).append(one)
        causes_of.setdefault(one.workload, set()).add(cause)
    weight = _weights(causes_of, groups, evidence)
    made = [
        Cluster(
            cause=cause,
            workloads=tuple(dict.fromkeys(member.workload for member in members)),
            attempts=sum(member.attempts for member in members),
            example=min(member.example for member in members),
            entries=weight[cause][0],
            downloads=weight[cause][1],
            sole_entries=weight[cause][2],
        )
        for cause, members in found.items()
    ]
    return sorted(made, key=lambda c: (-c.sole_entries, -c.entries, -c.attempts, c.cause.key))


def _weights(
    causes_of: Mapping[str, set[Cause]], groups: Sequence[PlannedGroup], evidence: Mapping[int, str]
) -> dict[Cause, tuple[int, int, int]]:
    totals: dict[Cause, list[int]] = {cause: [0, 0, 0] for causes in causes_of.values() for cause in causes}
    for planned in groups:
        causes = causes_of.get(evidence.get(planned.id, ""), set())
        for cause in causes:
            total = totals[cause]
            total[0] += planned.entries
            total[1] += planned.downloads
            total[2] += planned.entries if len(causes) == 1 else 0
    return {cause: (total[0], total[1], total[2]) for cause, total in totals.items()}
