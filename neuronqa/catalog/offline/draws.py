"""Random draws that are the same on every machine and Python version: only `Random.random()` is used."""

from __future__ import annotations

import bisect
import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Draws:
    """A named stream of draws, so that a change in one part of the generator leaves the others as they are."""

    def __init__(self, seed: int, name: str) -> None:
        self._next = random.Random(f"{seed}/{name}").random

    def chance(self, probability: float) -> bool:
        return self._next() < probability

    def uniform(self) -> float:
        return self._next()

    def below(self, count: int) -> int:
        return int(self._next() * count)

    def one(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def bell(self) -> float:
        """Mean 0, deviation 1, from -3.5 to 3.5: near enough to a normal draw for popularity."""
        return (sum(self._next() for _ in range(4)) - 2.0) * 3**0.5


class Weighted(Generic[T]):
    """Items drawn in proportion to their weights."""

    def __init__(self, weights: Mapping[T, float]) -> None:
        self._items = list(weights)
        self._sums = list(itertools.accumulate(weights.values()))

    def draw(self, draws: Draws) -> T:
        place = bisect.bisect_right(self._sums, draws.uniform() * self._sums[-1])
        return self._items[min(place, len(self._items) - 1)]
