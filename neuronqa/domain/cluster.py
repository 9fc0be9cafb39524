"""Clusters of failures: the states they go through, and who moved them there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class State(StrEnum):
    """Where a cluster is in its life. A person's word (`muted` and below) is never overruled by a sweep."""

    CANDIDATE = "candidate"
    """Seen once, in one attempt; nobody is asked to act before it is seen again."""
    NEW = "new"
    """First seen in the newest sweep."""
    ONGOING = "ongoing"
    ESCALATING = "escalating"
    """Blocks at least twice as many entries of the same catalog as before."""
    REGRESSED = "regressed"
    """Was fixed, and is back on another build."""
    FIX_PENDING = "fix-pending"
    """Somebody works on it."""
    LANDED = "landed"
    """A fix is in the build; no sweep has confirmed it yet."""
    FIXED = "fixed"
    """Every case it held ran again on another build and passed the check."""
    SHIFTED = "shifted"
    """Its cases no longer fail by it, but some now fail by another cause at the same check."""
    MASKED = "masked"
    """Its cases no longer reach the check, so nothing can be said."""
    STALE = "stale"
    """Its cases were not run for several sweeps."""
    MUTED = "muted"
    """Waived by a person until a date; still counted as failing."""
    EXPECTED = "expected"
    DUPLICATE = "duplicate"
    """Merged into another cluster."""
    INVALID = "invalid"

    @property
    def open(self) -> bool:
        """Is somebody to look at it?"""
        return self in _OPEN

    @property
    def by_person(self) -> bool:
        """Does only a person (or a waiver's expiry) take it out of this state?"""
        return self in (State.MUTED, State.EXPECTED, State.DUPLICATE, State.INVALID)


_OPEN = frozenset(
    {
        State.CANDIDATE,
        State.NEW,
        State.ONGOING,
        State.ESCALATING,
        State.REGRESSED,
        State.FIX_PENDING,
        State.LANDED,
    }
)


class Action(StrEnum):
    """What a journal row tells."""

    BORN = "born"
    OBSERVED = "observed"
    """A sweep moved it to another state."""
    MERGED = "merged"
    """Took another cluster's keys over."""
    GIVEN_UP = "given-up"
    """Its keys were taken over by another cluster."""
    SPLIT = "split"
    MOVED = "moved"
    """A key was taken from it, or came to it."""
    MUTED = "muted"
    UNMUTED = "unmuted"
    ASSIGNED = "assigned"
    MARKED = "marked"
    """A person or the fix queue set its state."""
    REKEYED = "rekeyed"
    """The rules of cause keys changed; it kept its id under a new key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One journal row: who moved a cluster, from where to where, and why."""

    action: Action
    actor: str
    before: State | None
    after: State
    reason: str = ""
    sweep_id: int | None = None
    build_id: int | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
