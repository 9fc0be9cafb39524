"""The entry-state function and the rung arithmetic: rates nobody can inflate.

Everything here is pure. Denominators are what was registered before the run; what was not shown is not a pass; rungs
are cumulative, so a failure on one rung keeps an entry off every higher one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

from neuronqa.domain.case import Variant
from neuronqa.domain.outcome import Check, Kind, Outcome, Rung, Standing
from neuronqa.domain.policy import Policy

Findings = Mapping[tuple[Variant, Check], Outcome]
"""What the counting attempts of one workload found; a pair that is absent was not run."""

UNSAID: Final = Outcome(Kind.NOT_RUN_LIMIT)


class Evidence(StrEnum):
    """Whose execution stands behind an entry's verdict."""

    EXECUTED = "executed"
    """The entry's own workload ran."""
    INHERITED = "inherited"
    """A workload with the same kernel key ran."""
    NONE = "none"
    """Nothing ran, or nothing could."""


@dataclass(frozen=True, slots=True)
class RungState:
    """How an entry stands on one rung, and the outcome that says so (None for a pass)."""

    rung: Rung
    standing: Standing
    outcome: Outcome | None


@dataclass(frozen=True, slots=True)
class EntryState:
    """An entry's place on the ladder of a policy."""

    rungs: tuple[RungState, ...]
    evidence: Evidence

    @property
    def green(self) -> bool:
        return all(state.standing is Standing.PASS for state in self.rungs)

    @property
    def missed(self) -> RungState | None:
        """The lowest failed rung; where none failed, the lowest rung that was not run; None for a green entry."""
        for standing in (Standing.FAIL, Standing.NOT_RUN):
            for state in self.rungs:
                if state.standing is standing:
                    return state
        return None

    @property
    def label(self) -> str:
        """One word group a state is counted under: `green`, or the missed rung and the kind of its outcome."""
        missed = self.missed
        if missed is None:
            return "green"
        return f"{missed.rung.value} {(missed.outcome or UNSAID).kind.value}"

    @property
    def cumulative(self) -> Iterator[tuple[Rung, Standing]]:
        """Every rung with the entry's standing on it: a failure below counts, and one that was not run below leaves the
        rest not run."""
        reached = Standing.PASS
        for state in self.rungs:
            if reached is Standing.FAIL or state.standing is Standing.FAIL:
                reached = Standing.FAIL
            elif state.standing is Standing.NOT_RUN:
                reached = Standing.NOT_RUN
            yield state.rung, reached

    def standing_at(self, rung: Rung) -> Standing:
        """The cumulative standing on the highest rung that is not above `rung`."""
        result = Standing.PASS
        for reached, standing in self.cumulative:
            if reached.height > rung.height:
                break
            result = standing
        return result


def entry_state(
    policy: Policy,
    listing: Outcome,
    findings: Findings,
    evidence: Evidence,
    unsaid: Outcome = UNSAID,
) -> EntryState:
    """Place an entry on the ladder.

    `listing` is the outcome of the `eligible` rung; `findings` are those of the entry's own workload or of the one it
    inherits from; `unsaid` says why a required finding is absent (budget, limit, narrowed).
    """
    states = [RungState(Rung.REGISTERED, Standing.PASS, None)]
    eligible = listing.standing is Standing.PASS
    states.append(RungState(Rung.ELIGIBLE, listing.standing, None if eligible else listing))
    for rung in policy.rungs[2:]:
        if not eligible:
            states.append(RungState(rung, Standing.NOT_RUN, Outcome(Kind.NOT_RUN_BLOCKED, Rung.ELIGIBLE.value)))
            continue
        states.append(_rung_state(rung, [findings.get(pair, unsaid) for pair in policy.asks(rung)]))
    return EntryState(tuple(states), evidence if eligible else Evidence.NONE)


def _rung_state(rung: Rung, outcomes: list[Outcome]) -> RungState:
    for standing in (Standing.FAIL, Standing.NOT_RUN):
        for outcome in outcomes:
            if outcome.standing is standing:
                return RungState(rung, standing, outcome)
    return RungState(rung, Standing.PASS, None)


@dataclass(frozen=True, slots=True)
class Group:
    """Entries that share a state: how many there are, and their downloads."""

    state: EntryState
    entries: int
    downloads: int


@dataclass(frozen=True, slots=True)
class Gate:
    """One rung's count over everything registered. `low` and `high` are None when a control withheld the rate."""

    rung: Rung
    passed: int
    failed: int
    not_run: int
    registered: int
    low: float | None
    high: float | None


class Weight(StrEnum):
    """What a rate is counted in."""

    ENTRIES = "entries"
    DOWNLOADS = "downloads"


def gates(
    policy: Policy,
    groups: Iterable[Group],
    *,
    disagreement: float,
    withheld: frozenset[Rung] = frozenset(),
    weight: Weight = Weight.ENTRIES,
) -> tuple[Gate, ...]:
    """Count every rung of the policy over `groups`.

    `disagreement` is the audit's upper bound on how often an inherited verdict is wrong (1.0 when nothing was
    audited): low = (executed passes + inherited passes x (1 - disagreement)) / registered, high = (passed + not run) /
    registered. A withheld rung withholds every rung above it, since rungs are cumulative.
    """
    if not 0.0 <= disagreement <= 1.0:
        raise ValueError(f"disagreement must lie in [0, 1], not {disagreement}")
    counted = list(groups)
    floor = min((rung.height for rung in withheld), default=len(Rung))
    return tuple(_gate(rung, counted, disagreement, rung.height >= floor, weight) for rung in policy.rungs)


def _gate(rung: Rung, groups: list[Group], disagreement: float, withheld: bool, weight: Weight) -> Gate:
    executed = inherited = failed = not_run = 0
    for group in groups:
        size = group.entries if weight is Weight.ENTRIES else group.downloads
        match group.state.standing_at(rung):
            case Standing.FAIL:
                failed += size
            case Standing.NOT_RUN:
                not_run += size
            case Standing.PASS if group.state.evidence is Evidence.INHERITED and rung.height > Rung.ELIGIBLE.height:
                inherited += size
            case Standing.PASS:
                executed += size
            case standing:
                assert_never(standing)
    return gate(rung, executed, inherited, failed, not_run, disagreement=disagreement, withheld=withheld)


def gate(
    rung: Rung, executed: int, inherited: int, failed: int, not_run: int, *, disagreement: float, withheld: bool
) -> Gate:
    """One rung's range from what was counted: `executed` and `inherited` passed."""
    passed = executed + inherited
    registered = passed + failed + not_run
    low = (executed + inherited * (1.0 - disagreement)) / registered if registered else 0.0
    high = (passed + not_run) / registered if registered else 0.0
    return Gate(rung, passed, failed, not_run, registered, None if withheld else low, None if withheld else high)
