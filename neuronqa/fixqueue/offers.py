"""Which root causes are offered to agents, and why the others are not. Every cluster of a sweep gets an answer."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from neuronqa.db.clusters import ClusterCount
from neuronqa.db.fix_store import Offer
from neuronqa.domain.cluster import State
from neuronqa.domain.outcome import AtFault
from neuronqa.triage.repro import operator_of


class Refusal(StrEnum):
    """Why a cluster is not offered."""

    NOT_DEVICE = "not-device"
    MUTED = "muted"
    EXPECTED = "expected"
    MASKED = "masked"
    SETTLED = "settled"
    LIVE_ITEM = "live-item"
    UNPARSED = "unparsed"
    BLOCKS_NOTHING = "blocks-nothing"
    NOT_REPRODUCIBLE = "not-reproducible"

    @property
    def text(self) -> str:
        """One sentence."""
        return _TEXTS[self]


_TEXTS: Final = {
    Refusal.NOT_DEVICE: "the device is not at fault",
    Refusal.MUTED: "a person puts up with it for now",
    Refusal.EXPECTED: "a person says that it is expected",
    Refusal.MASKED: "its cases no longer reach the check",
    Refusal.SETTLED: "it is fixed, stale, shifted, invalid, or another cluster's duplicate",
    Refusal.LIVE_ITEM: "the queue has an item of it already",
    Refusal.UNPARSED: "it names no operator, so nobody can say what to write",
    Refusal.BLOCKS_NOTHING: "no entry waits for it",
    Refusal.NOT_REPRODUCIBLE: "its cause did not show when it was run alone",
}
_BY_STATE: Final = {
    State.MUTED: Refusal.MUTED,
    State.EXPECTED: Refusal.EXPECTED,
    State.MASKED: Refusal.MASKED,
}


@dataclass(frozen=True, kw_only=True)
class Considered:
    """A cluster, and what speaks against offering it; None if nothing does."""

    cluster: int
    title: str
    operator: str
    entries: int
    """Entries it blocks."""
    place: int
    refusal: Refusal | None

    def to_json(self) -> dict[str, object]:
        said = {"cluster": self.cluster, "title": self.title, "entries": self.entries, "place": self.place}
        return said | {"refusal": self.refusal.value if self.refusal else None}


def consider(counts: Sequence[ClusterCount], live: Container[int]) -> list[Considered]:
    """Every cluster of a sweep in the order of fixes. `live`: the clusters that have an item.

    Whether a cause can be reproduced is not known before it has been tried; one that was seen once is tried too.
    """
    return [
        Considered(
            cluster=one.cluster.id,
            title=str(one.cluster.outcome),
            operator=operator_of(one.cluster.outcome)[0],
            entries=one.entries,
            place=one.place,
            refusal=_refusal(one, live),
        )
        for one in sorted(counts, key=lambda one: one.place)
    ]


def offer(one: ClusterCount, sweep_id: int) -> Offer:
    """What is written of a cluster that is offered."""
    return Offer(
        cluster_id=one.cluster.id,
        sweep_id=sweep_id,
        lane=one.cluster.lane,
        operator=operator_of(one.cluster.outcome)[0],
        title=str(one.cluster.outcome),
        place=one.place,
        entries=one.entries,
        downloads=one.downloads,
    )


def _refusal(one: ClusterCount, live: Container[int]) -> Refusal | None:
    state = one.cluster.state
    if one.cluster.id in live:
        return Refusal.LIVE_ITEM
    if state in _BY_STATE:
        return _BY_STATE[state]
    if not state.open:
        return Refusal.SETTLED
    if one.cluster.at_fault is not AtFault.DEVICE:
        return Refusal.NOT_DEVICE
    if not operator_of(one.cluster.outcome)[0]:
        return Refusal.UNPARSED
    return None if one.entries else Refusal.BLOCKS_NOTHING
