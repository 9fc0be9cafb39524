"""What the pages count, added up once when a sweep ends, from the very standings that are kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from neuronqa.domain.case import Variant
from neuronqa.domain.ladder import UNSAID, EntryState, Evidence, entry_state
from neuronqa.domain.outcome import Outcome, Rung, Standing
from neuronqa.domain.policy import Policy
from neuronqa.sweep.standings import Standings

EVERYTHING = ""
"""The lane of the whole policy; the others are its variants."""

RungKey = tuple[str, Rung, Evidence, Standing]
StateKey = tuple[str, str, Evidence, str]
"""Architecture, label, evidence, missed rung."""


@dataclass
class Weight:
    """How much stands behind something."""

    entries: int = 0
    downloads: int = 0

    def add(self, entries: int, downloads: int) -> None:
        self.entries += entries
        self.downloads += downloads


@dataclass
class Tally:
    """Sums over the parts of a sweep's standings."""

    policy: Policy
    unsaid: Outcome = UNSAID
    rungs: dict[RungKey, Weight] = field(default_factory=lambda: defaultdict(Weight))
    states: dict[StateKey, Weight] = field(default_factory=dict)
    behind: dict[str, Weight] = field(default_factory=dict)
    """By hash of a workload: the entries that stand by its findings, inherited ones included."""

    def watch(self, parts: Iterable[Standings]) -> Iterator[tuple[int, EntryState]]:
        """Pass the standings on, group by group, and add them up on the way."""
        for part in parts:
            self._add(part)
            yield from part.states.items()

    def _add(self, part: Standings) -> None:
        lanes = [(str(variant), lane(self.policy, variant)) for variant in self.policy.variants]
        known: dict[tuple[str, str, str], list[RungKey]] = {}
        by = part.standing_by
        for planned in part.groups:
            state = part.states[planned.id]
            weight = planned.entries, planned.downloads
            workload = by.get(planned.id, "")
            if workload:
                self.behind.setdefault(workload, Weight()).add(*weight)
            missed = state.missed
            kept = planned.group.model_type, state.label, state.evidence, missed.rung.value if missed else ""
            self.states.setdefault(kept, Weight()).add(*weight)
            key = workload, str(planned.group.listing), state.evidence.value
            if key not in known:
                findings = part.findings.get(workload, {})
                known[key] = [
                    step
                    for name, policy in lanes
                    for step in _climbed(
                        name, entry_state(policy, planned.group.listing, findings, state.evidence, self.unsaid)
                    )
                ]
            for step in (*_climbed(EVERYTHING, state), *known[key]):
                self.rungs[step].add(*weight)


def _climbed(name: str, state: EntryState) -> Iterator[RungKey]:
    for rung, standing in state.cumulative:
        yield name, rung, state.evidence, standing


def lane(policy: Policy, variant: Variant) -> Policy:
    """The part of a policy that one variant decides."""
    required = {rung: (variant,) for rung, variants in policy.required.items() if variant in variants}
    return Policy(name=policy.name, required=required, thresholds=policy.thresholds, limits=policy.limits)
