"""What became of an entry between two sweeps: one rule for the command line, the reports and the pages."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from neuronqa.domain.outcome import LADDER, Rung, Standing


class Change(StrEnum):
    """What became of an entry. Every pair of standings has exactly one."""

    REGRESSED = "regressed"
    """Was green, fails now."""
    FIXED = "fixed"
    """Failed, is green now."""
    SHIFTED = "shifted"
    """Fails by other causes now."""
    MASKED = "newly-masked"
    """Fails at a lower rung now, so that what it failed by is not reached."""
    NEWLY_RUN = "newly-run"
    NOT_RUN = "not-run"
    """Was run, is not now."""
    GONE = "gone"
    """Is not registered any more."""
    ADDED = "added"
    """Was not registered before."""
    GREEN = "green"
    FAILING = "failing"
    """Fails by the same causes."""
    UNKNOWN = "unknown"
    """Run in neither."""

    @property
    def is_one(self) -> bool:
        """Does anything differ?"""
        return self not in (Change.GREEN, Change.FAILING, Change.UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Where an entry stands in one sweep."""

    standing: Standing
    rung: str = ""
    """The lowest rung it missed; empty for a green entry."""
    outcome: str = ""
    causes: frozenset[str] = frozenset()
    """Keys of everything between it and green."""
    waived: frozenset[str] = frozenset()
    """Those of them that somebody put up with."""
    downloads: int = 0


def change(before: Line | None, after: Line | None) -> Change:
    """What became of an entry: total over every pair."""
    if before is None or after is None:
        return Change.ADDED if before is None else Change.GONE
    match before.standing, after.standing:
        case Standing.NOT_RUN, Standing.NOT_RUN:
            return Change.UNKNOWN
        case Standing.NOT_RUN, _:
            return Change.NEWLY_RUN
        case _, Standing.NOT_RUN:
            return Change.NOT_RUN
        case Standing.PASS, Standing.PASS:
            return Change.GREEN
        case Standing.PASS, _:
            return Change.REGRESSED
        case _, Standing.PASS:
            return Change.FIXED
        case _:
            return _otherwise(before, after)


def _otherwise(before: Line, after: Line) -> Change:
    """It fails on both sides."""
    if before.causes == after.causes:
        return Change.FAILING
    if _height(after.rung) < _height(before.rung) and not before.causes <= after.causes:
        return Change.MASKED
    return Change.SHIFTED


def _height(rung: str) -> int:
    return Rung(rung).height if rung else len(LADDER)
