"""Which fixes first, held against every possible set."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations

from neuronqa.triage.unlock import Blocked, rank, unlocked

LEAST = 0.97


def blocked(*rows: tuple[Sequence[int], int]) -> list[Blocked]:
    return [Blocked(frozenset(by), n, 10 * n, True) for by, n in rows]


def models(seed: int, causes: int = 12, count: int = 41, operators: int = 120) -> list[Blocked]:
    """Models that share common operators and have a few of their own, as real traces do; some operators are missing."""
    draw = random.Random(seed)
    traces = [
        {op for op in range(30) if draw.random() < 0.9} | set(draw.sample(range(30, operators), draw.randint(3, 12)))
        for _ in range(count)
    ]
    missing = dict(zip(draw.sample(range(operators), causes), range(1, causes + 1), strict=True))
    return [Blocked(frozenset(missing[op] for op in trace if op in missing), 1, 1, True) for trace in traces]


def best_possible(rows: Sequence[Blocked], size: int) -> int:
    weights: dict[frozenset[int], int] = {}
    for one in rows:
        if one.by:
            weights[one.by] = weights.get(one.by, 0) + one.entries
    everything = sorted({cluster for by in weights for cluster in by})
    return max((unlocked(weights, frozenset(some)) for some in combinations(everything, size)), default=0)


def test_what_blocks_alone_goes_before_what_blocks_most() -> None:
    order = rank(blocked(((1, 2), 100), ((3,), 40), ((1, 3), 10)))
    assert [step.cluster for step in order.steps] == [3, 1, 2]
    assert [step.entries for step in order.steps] == [40, 50, 150]


def test_a_pair_that_unlocks_together_is_found_although_neither_unlocks_alone() -> None:
    order = rank(blocked(((1, 2, 3), 100), ((4,), 5), ((5,), 4), ((6,), 3)))
    assert set(order.best[1].clusters) == {1, 2, 3}
    assert order.best[1].entries == 100
    assert order.best[0].clusters == (4,)


def test_the_best_sets_are_those_of_an_exhaustive_search_and_one_order_loses_little_against_all_of_them() -> None:
    """On the mean of draws, as no single order can hold the best set of every size at once."""
    reached: dict[int, list[int]] = {1: [], 3: [], 5: []}
    possible: dict[int, list[int]] = {1: [], 3: [], 5: []}
    for seed in range(12):
        rows = models(seed)
        green = sum(one.entries for one in rows if not one.by)
        order = rank(rows)
        for best, size in zip(order.best, (1, 3, 5), strict=False):
            assert best.entries == best_possible(rows, size)
            reached[size].append(green + order.steps[size - 1].entries)
            possible[size].append(green + best.entries)
    for size, found in reached.items():
        assert sum(found) >= LEAST * sum(possible[size]), f"{size} fixes"


def test_the_curve_ends_with_everything_that_is_known_to_be_unlocked() -> None:
    rows = [*models(9), Blocked(frozenset((1, 2)), 50, 500, False)]
    order = rank(rows)
    last = order.steps[-1]
    assert last.entries == sum(one.entries for one in rows if one.by and one.complete)
    assert last.entries_high == last.entries + 50
    assert all(a.entries <= b.entries <= b.entries_high for a, b in zip(order.steps, order.steps[1:], strict=False))


def test_who_is_to_come_last_comes_last_however_much_it_unlocks() -> None:
    order = rank(blocked(((1,), 100), ((2,), 1), ((1, 3), 9)), last=frozenset({1}))
    assert [step.cluster for step in order.steps][-1] == 1
    assert order.best[0].clusters == (2,)


def test_cut_lists_of_blockers_unlock_nothing_for_certain_but_decide_between_equals() -> None:
    rows = [Blocked(frozenset((1,)), 10, 1, False), Blocked(frozenset((2,)), 20, 1, False)]
    order = rank(rows)
    assert [(step.cluster, step.entries, step.entries_high) for step in order.steps] == [(2, 0, 20), (1, 0, 30)]


def test_nothing_blocked_is_an_empty_order() -> None:
    assert rank([]).steps == ()
    assert rank([Blocked(frozenset(), 5, 5, True)]).steps == ()
    assert rank([]).to_json() == {"curve": [], "best": []}


def test_the_order_does_not_depend_on_the_order_of_the_rows() -> None:
    rows = models(3)
    shuffled = list(rows)
    random.Random(1).shuffle(shuffled)
    assert rank(rows) == rank(shuffled)
