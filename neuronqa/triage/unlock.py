"""Which fixes first: by how many entries turn green, over sets of clusters, since most entries have several blockers.

`unlock(S)` is the weight of the entries all of whose blockers are in S. It is neither submodular nor monotone in gain:
the best single fix need not be part of the best pair. So the first places are searched exactly over the clusters that
matter, as a chain S1 < S3 < S5 that loses least against the best set of each size; the rest follows greedily.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

CANDIDATES: Final = 18
SIZES: Final = (1, 3, 5)
KEPT: Final = 400
"""Best sets of five among which the chain is looked for."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """Entries with the same blockers: their weight, and whether the list of blockers is complete."""

    by: frozenset[int]
    entries: int
    downloads: int
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The order of fixes after one more: what is green then. `entries_high` takes cut lists for complete."""

    cluster: int
    entries: int
    entries_high: int
    downloads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The best set of one size, whatever comes before or after it."""

    clusters: tuple[int, ...]
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlock:
    """The order of fixes, and beside it the best small sets."""

    steps: tuple[Step, ...]
    best: tuple[Best, ...]

    def to_json(self, limit: int = 200) -> dict[str, Any]:
        """The first `limit` steps of the curve and the best sets."""
        return {
            "curve": [
                {
                    "cluster": step.cluster,
                    "entries": step.entries,
                    "entries_high": step.entries_high,
                    "downloads": step.downloads,
                }
                for step in self.steps[:limit]
            ],
            "best": [{"clusters": list(one.clusters), "entries": one.entries} for one in self.best],
        }


def merged(blocked: Iterable[Blocked]) -> list[Blocked]:
    """The same weights with one row for each set of blockers and completeness."""
    weights: dict[tuple[frozenset[int], bool], list[int]] = {}
    for one in blocked:
        weight = weights.setdefault((one.by, one.complete), [0, 0])
        weight[0] += one.entries
        weight[1] += one.downloads
    return [Blocked(by, n, d, complete) for (by, complete), (n, d) in weights.items()]


def rank(blocked: Iterable[Blocked], last: frozenset[int] = frozenset()) -> Unlock:
    """Order every cluster that blocks anything. Those in `last` (muted, say) come after all others."""
    rows = [one for one in merged(blocked) if one.by]
    everything = sorted({cluster for one in rows for cluster in one.by})
    weights = _sets(rows)
    free = {by: n for by, n in weights.items() if not by & last}
    candidates = _candidates(free)
    best = _best_sets(free, candidates)
    chain = _chain(free, best)
    order = _greedy(rows, [cluster for cluster in everything if cluster not in last], chain)
    order = _greedy(rows, [cluster for cluster in everything if cluster in last], order)
    return Unlock(steps=_steps(rows, order), best=tuple(_top(best[size]) for size in SIZES if best[size][0][1]))


def unlocked(weights: Mapping[frozenset[int], int], fixed: frozenset[int]) -> int:
    """Entries all of whose blockers are fixed."""
    return sum(n for by, n in weights.items() if by <= fixed)


def _sets(rows: Sequence[Blocked]) -> dict[frozenset[int], int]:
    """Weights by blockers. Entries whose list is cut may have more blockers: nobody can say that they are unlocked."""
    return {one.by: one.entries for one in rows if one.complete}


def _scores(weights: Mapping[frozenset[int], int]) -> dict[int, float]:
    scores: dict[int, float] = {}
    for by, n in weights.items():
        for cluster in by:
            scores[cluster] = scores.get(cluster, 0.0) + n / len(by) ** 2
    return scores


def _candidates(weights: Mapping[frozenset[int], int]) -> list[int]:
    """The clusters worth searching: of small sets of blockers, those in which most entries are caught."""
    small = {by: n for by, n in weights.items() if len(by) <= SIZES[-1]}
    scores = _scores(small)
    return sorted(scores, key=lambda cluster: (-scores[cluster], cluster))[:CANDIDATES]


def _best_sets(
    weights: Mapping[frozenset[int], int], candidates: Sequence[int]
) -> dict[int, list[tuple[int, frozenset[int]]]]:
    """The best sets of each size among the candidates, best first."""
    inside = frozenset(candidates)
    place = {cluster: i for i, cluster in enumerate(candidates)}
    masks = [
        (sum(1 << place[cluster] for cluster in by), n)
        for by, n in weights.items()
        if len(by) <= SIZES[-1] and by <= inside
    ]
    value: dict[int, int] = {}
    for mask, n in masks:
        value[mask] = value.get(mask, 0) + n
    found = {}
    for size in SIZES:
        sets = [
            (_worth(value, bits), frozenset(candidates[i] for i in bits))
            for bits in combinations(range(len(candidates)), min(size, len(candidates)))
        ]
        sets.sort(key=lambda one: (-one[0], sorted(one[1])))
        found[size] = sets[:KEPT]
    return found


def _worth(value: Mapping[int, int], bits: Sequence[int]) -> int:
    """What the set of these bits unlocks: the sum over its subsets."""
    masks = [0]
    for bit in bits:
        masks += [mask | 1 << bit for mask in masks]
    return sum(value.get(mask, 0) for mask in masks[1:])


def _chain(
    weights: Mapping[frozenset[int], int], best: Mapping[int, Sequence[tuple[int, frozenset[int]]]]
) -> list[int]:
    """The first places: a chain through the sizes whose worst share of the best possible is greatest."""
    top = {size: sets[0][0] for size, sets in best.items() if sets}
    if not top:
        return []
    found: tuple[tuple[float, float], list[int]] = ((-1.0, -1.0), [])
    worth: dict[frozenset[int], int] = {}

    def share(some: Iterable[int], size: int) -> float:
        chosen = frozenset(some)
        if chosen not in worth:
            worth[chosen] = unlocked(small, chosen)
        return worth[chosen] / top[size] if top[size] else 1.0

    inside = frozenset().union(*(chosen for _, chosen in best[SIZES[-1]]))
    small = {by: n for by, n in weights.items() if by <= inside}
    for _, five in best[SIZES[-1]]:
        last = share(five, SIZES[2])
        if last + 2 < found[0][0]:
            break
        for three in combinations(sorted(five), min(3, len(five))):
            middle = share(three, SIZES[1])
            if last + middle + 1 < found[0][0]:
                continue
            for one in three:
                shares = (share((one,), SIZES[0]), middle, last)
                score = (sum(shares), min(shares))
                if score > found[0]:
                    found = (score, [one, *_rest(three, (one,)), *_rest(five, three)])
    return _tidy(small, found[1])


def _rest(some: Iterable[int], without: Sequence[int]) -> list[int]:
    return sorted(cluster for cluster in some if cluster not in without)


def _tidy(weights: Mapping[frozenset[int], int], chain: list[int]) -> list[int]:
    """Between the sizes of the chain, the one that unlocks more at once goes first."""
    for i in range(1, len(chain) - 1, 2):
        before = frozenset(chain[:i])
        first, second = chain[i], chain[i + 1]
        if unlocked(weights, before | {second}) > unlocked(weights, before | {first}):
            chain[i], chain[i + 1] = second, first
    return chain


def _greedy(rows: Sequence[Blocked], clusters: Sequence[int], fixed: list[int]) -> list[int]:
    """`fixed` and then the rest of `clusters`: next is what unlocks most at once, then what comes nearest to it."""
    order = list(fixed)
    board = _Board(rows, frozenset(order))
    left = set(clusters) - set(order)
    while left:
        chosen = max(left, key=board.worth)
        order.append(chosen)
        left.discard(chosen)
        board.fix(chosen)
    return order


class _Board:
    """What is still blocked by what, while one cluster after the other is fixed."""

    def __init__(self, rows: Sequence[Blocked], fixed: frozenset[int]) -> None:
        self._left = [one.by - fixed for one in rows]
        self._rows = rows
        self._holding: dict[int, list[int]] = {}
        self._gain: dict[int, int] = {}
        self._near: dict[int, float] = {}
        for i, left in enumerate(self._left):
            for cluster in left:
                self._holding.setdefault(cluster, []).append(i)
            self._count(i, 1)

    def worth(self, cluster: int) -> tuple[int, float, int]:
        """Entries it would unlock now, how near it brings the others, and its age."""
        return self._gain.get(cluster, 0), self._near.get(cluster, 0.0), -cluster

    def fix(self, cluster: int) -> None:
        for i in self._holding.get(cluster, ()):
            self._count(i, -1)
            self._left[i] -= {cluster}
            self._count(i, 1)

    def _count(self, i: int, sign: int) -> None:
        left, row = self._left[i], self._rows[i]
        for cluster in left:
            if len(left) == 1 and row.complete:
                self._gain[cluster] = self._gain.get(cluster, 0) + sign * row.entries
            self._near[cluster] = self._near.get(cluster, 0.0) + sign * row.entries / len(left) ** 2


def _steps(rows: Sequence[Blocked], order: Sequence[int]) -> tuple[Step, ...]:
    """The curve along an order: an entry turns green with the last of its blockers."""
    place = {cluster: i for i, cluster in enumerate(order)}
    entries, high, downloads = ([0] * len(order) for _ in range(3))
    for one in rows:
        turn = max(place[cluster] for cluster in one.by)
        high[turn] += one.entries
        if one.complete:
            entries[turn] += one.entries
            downloads[turn] += one.downloads
    steps, total = [], [0, 0, 0]
    for i, cluster in enumerate(order):
        total = [total[0] + entries[i], total[1] + high[i], total[2] + downloads[i]]
        steps.append(Step(cluster=cluster, entries=total[0], entries_high=total[1], downloads=total[2]))
    return tuple(steps)


def _top(sets: Sequence[tuple[int, frozenset[int]]]) -> Best:
    entries, clusters = sets[0]
    return Best(clusters=tuple(sorted(clusters)), entries=entries)
