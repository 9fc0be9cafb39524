"""Items of the fix queue: the states they go through, and what may follow what."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class ItemState(StrEnum):
    """Where an item is in its life."""

    QUEUED = "queued"
    LEASED = "leased"
    SUBMITTED = "submitted"
    VERIFYING = "verifying"
    ACCEPTED = "accepted"
    """Verified; waits for a build to be part of."""
    LANDED = "landed"
    """In a build; no sweep has looked yet."""
    CONFIRMED = "confirmed"
    """A sweep on that build found the cause gone."""
    REVERTED = "reverted"
    """A sweep on that build found the cause still there; the cluster may be offered anew."""
    NEEDS_HUMAN = "needs-human"
    """Agents have had their attempts, or policy asks for a person."""
    CANCELLED = "cancelled"

    @property
    def live(self) -> bool:
        """Does it keep its cluster from being offered again?"""
        return self not in _ENDED


class Ending(StrEnum):
    """How a lease ended."""

    SUBMITTED = "submitted"
    RELEASED = "released"
    ABSTAINED = "abstained"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class Judgement(StrEnum):
    """What became of a submission."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    INCONCLUSIVE = "inconclusive"
    NEEDS_HUMAN = "needs-human"


_ENDED: Final = frozenset({ItemState.CONFIRMED, ItemState.REVERTED, ItemState.CANCELLED})

FOLLOWS: Final = {
    ItemState.QUEUED: {ItemState.LEASED, ItemState.NEEDS_HUMAN, ItemState.CANCELLED},
    ItemState.LEASED: {ItemState.QUEUED, ItemState.SUBMITTED, ItemState.NEEDS_HUMAN, ItemState.CANCELLED},
    ItemState.SUBMITTED: {ItemState.VERIFYING, ItemState.CANCELLED},
    ItemState.VERIFYING: {
        ItemState.SUBMITTED,  # whoever verified it died
        ItemState.ACCEPTED,
        ItemState.QUEUED,
        ItemState.NEEDS_HUMAN,
        ItemState.CANCELLED,
    },
    ItemState.ACCEPTED: {ItemState.LANDED, ItemState.CANCELLED},
    ItemState.LANDED: {ItemState.CONFIRMED, ItemState.REVERTED, ItemState.CANCELLED},
    ItemState.NEEDS_HUMAN: {ItemState.QUEUED, ItemState.ACCEPTED, ItemState.CANCELLED},
    ItemState.CONFIRMED: set(),
    ItemState.REVERTED: set(),
    ItemState.CANCELLED: set(),
}
"""What may follow each state."""

ATTEMPTS: Final = 5
"""Rejected submissions of one item; after as many a person looks."""
BACK_OFF_S: Final = 60.0
"""Before an item is offered again: doubled with every rejection."""


def after(judgement: Judgement, rejections: int) -> ItemState:
    """The state of an item whose submission was judged so, `rejections` being those it has had, this one included."""
    match judgement:
        case Judgement.ACCEPTED:
            return ItemState.ACCEPTED
        case Judgement.NEEDS_HUMAN:
            return ItemState.NEEDS_HUMAN
        case Judgement.REJECTED | Judgement.INCONCLUSIVE:
            return ItemState.NEEDS_HUMAN if rejections >= ATTEMPTS else ItemState.QUEUED


def wait_s(rejections: int) -> float:
    """How long an item rests after so many rejections."""
    return BACK_OFF_S * 2.0 ** (rejections - 1) if rejections else 0.0
