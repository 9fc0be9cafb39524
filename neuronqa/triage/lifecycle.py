"""What a sweep makes of a cluster: a pure, total function of where it stood and what became of its cases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from neuronqa.domain.cluster import State

STALE_AFTER: Final = 3
"""Sweeps in a row in which none of a cluster's cases was run."""
ESCALATES: Final = 2.0
"""Times as many entries of the same catalog as before."""
LEAST: Final = 10
"""Entries more that an escalation is worth a word for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What one sweep saw of a cluster: how many cases fail by it now, and what became of those that did before."""

    cases: int = 0
    attempts: int = 0
    entries: int = 0
    entries_before: int | None = None
    """In the sweep it was last seen in, if that had the same catalog."""
    passed: int = 0
    """Of the cases it held: those that pass the check now."""
    elsewhere: int = 0
    """Those that fail the check by another cause now."""
    hidden: int = 0
    """Those that do not reach the check now."""
    not_run: int = 0
    another_build: bool = False
    """Is it another build than that of the sweep it was last seen in?"""
    fixing_build: bool = False
    """Is it the very build that was said to have fixed it?"""
    trusted: bool = True
    """Were the controls of the check caught? Else nothing can be called fixed."""
    unseen: int = 0
    """Settled sweeps before this one in which it was neither seen nor run."""
    waived: bool = False

    def to_json(self) -> dict[str, Any]:
        names = ("cases", "attempts", "entries", "passed", "elsewhere", "hidden", "not_run")
        return {name: getattr(self, name) for name in names}


def born(seen: Sighting) -> State:
    """The first state of a cluster: one attempt at one case is not yet a cause to act on."""
    return State.CANDIDATE if seen.cases <= 1 and seen.attempts <= 1 else State.NEW


def step(state: State, seen: Sighting) -> tuple[State, str]:
    """The next state and why. The same state means that nothing is to be journalled."""
    if state is State.MUTED and not seen.waived:
        state_now, why = step(State.ONGOING, seen)
        return state_now, "the waiver has expired" + (f"; {why}" if why else "")
    if state.by_person:
        return state, ""
    return _seen(state, seen) if seen.cases else _unseen(state, seen)


def step_again(state: State, seen: Sighting) -> tuple[State, str]:
    """The same for a sweep that is triaged anew: it has moved the clusters it saw already, but may have seen more."""
    if state is State.CANDIDATE and seen.cases and born(seen) is State.NEW:
        return State.NEW, "seen in more cases"
    return state, ""


def _seen(state: State, seen: Sighting) -> tuple[State, str]:
    match state:
        case State.CANDIDATE:
            return State.ONGOING, "seen again"
        case State.NEW:
            return State.ONGOING, "seen in another sweep"
        case State.ONGOING | State.REGRESSED if _grew(seen):
            return State.ESCALATING, f"blocks {seen.entries:,} entries after {seen.entries_before:,}"
        case State.ESCALATING if not _grew(seen):
            return State.ONGOING, "no longer growing"
        case State.FIXED if seen.fixing_build:
            return State.ONGOING, "seen on the very build that was said to fix it"
        case State.FIXED:
            return State.REGRESSED, f"fails again in {seen.cases:,} cases"
        case State.LANDED if seen.another_build:
            return State.REGRESSED, f"the fix that landed does not hold in {seen.cases:,} cases"
        case State.SHIFTED | State.MASKED | State.STALE:
            return State.ONGOING, f"seen again in {seen.cases:,} cases"
        case _:
            return state, ""


def _unseen(state: State, seen: Sighting) -> tuple[State, str]:
    """Only what was shown counts: a cluster is fixed when every case it held passes, on another build."""
    if state in (State.FIXED, State.SHIFTED):
        return state, ""
    known = seen.passed + seen.elsewhere + seen.hidden
    if not known:
        if seen.not_run and seen.unseen + 1 >= STALE_AFTER and state is not State.STALE:
            return State.STALE, f"its cases were not run in {seen.unseen + 1} sweeps"
        return state, ""
    if seen.not_run:
        return state, ""
    if seen.hidden:
        why = f"{seen.hidden:,} of its {known:,} cases no longer reach the check"
        return State.MASKED, why if state is not State.MASKED else ""
    if seen.elsewhere:
        return State.SHIFTED, f"{seen.elsewhere:,} of its {known:,} cases now fail the check by another cause"
    if seen.another_build and seen.trusted:
        return State.FIXED, f"all of its {known:,} cases pass"
    return state, ""


def _grew(seen: Sighting) -> bool:
    before = seen.entries_before
    return before is not None and seen.entries >= ESCALATES * before and seen.entries - before >= LEAST
