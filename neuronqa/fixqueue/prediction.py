"""How many entries a set of fixes would turn green: a range, made before anybody fixes anything."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from neuronqa.db import blocks, fixes
from neuronqa.domain.fix import ItemState
from neuronqa.errors import BadInput

MANY: Final = 100_000


@dataclass(frozen=True, kw_only=True)
class Gain:
    """Entries that turn green. `low`: every check they were asked has an answer, and nothing else is in their way;
    `high` takes those with open questions too."""

    low: int
    high: int


def gain(db: Connection, sweep_id: int, fixed: Collection[int]) -> Gain:
    """What fixing these clusters would add to a triaged sweep."""
    wanted = frozenset(fixed)
    low = high = 0
    for group in blocks.blocked(db, sweep_id):
        if group.by <= wanted:
            high += group.entries
            low += group.entries if group.complete else 0
    return Gain(low=low, high=high)


def gain_of(db: Connection, items: Collection[int]) -> Gain:
    """What these items, all of one sweep, would add to it together; none means all that have landed.

    Raises BadInput for items of several sweeps, and for none at all.
    """
    chosen = [fixes.item(db, one) for one in items] or fixes.items(db, [ItemState.LANDED], limit=MANY)
    sweeps = {one.sweep_id for one in chosen}
    if len(sweeps) != 1:
        raise BadInput("name items of one sweep" if sweeps else "nothing has landed", hint="neuronqa queue list")
    return gain(db, sweeps.pop(), {one.cluster_id for one in chosen})
