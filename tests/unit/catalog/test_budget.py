"""Whatever the Hub says of its windows, nothing is sent beyond them."""

from __future__ import annotations

import random
from collections import Counter, deque

import pytest
from huggingface_hub.utils import RateLimitInfo

from neuronqa.catalog.hub.budget import SLACK_S, Budget

FLYING = 8
LANE = "resolvers"


class Clock:
    """Moves only when told, or when somebody sleeps."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def said(remaining: int, seconds: int, quota: int | None = None) -> RateLimitInfo:
    return RateLimitInfo("api", remaining=remaining, reset_in_seconds=seconds, limit=quota, window_seconds=300)


def budget(clock: Clock) -> Budget:
    return Budget(clock, clock.sleep)


def answered(of: Budget, info: RateLimitInfo | None) -> None:
    of.hear(LANE, info)
    of.release(LANE)


def spend(clock: Clock, of: Budget, count: int) -> float:
    """Take so many, and return how long that took."""
    began = clock.now
    for _ in range(count):
        of.acquire(LANE)
    return clock.now - began


def test_a_hub_that_says_nothing_sets_no_limit() -> None:
    clock = Clock()
    found = budget(clock)
    found.acquire(LANE)
    answered(found, None)
    assert spend(clock, found, 1_000) == 0


def test_what_is_left_is_spent_and_then_the_window_waited_for() -> None:
    clock = Clock()
    found = budget(clock)
    found.acquire(LANE)
    answered(found, said(3, 100, 5))
    assert spend(clock, found, 3) == 0
    assert spend(clock, found, 1) == pytest.approx(100 + SLACK_S)
    assert found.waited_s == pytest.approx(100 + SLACK_S)


def test_what_is_under_way_counts_against_the_new_window() -> None:
    clock = Clock()
    found = budget(clock)
    found.acquire(LANE)
    answered(found, said(10, 100, 10))
    spend(clock, found, 4)
    clock.now += 200
    assert spend(clock, found, 6) == 0
    answered(found, said(5, 250, 10))
    assert spend(clock, found, 1) > 0, "nine are still under way, and five were left"


def test_a_count_that_comes_late_is_not_believed() -> None:
    """Answers overtake each other: the smaller count is the newer one."""
    clock = Clock()
    found = budget(clock)
    found.acquire(LANE)
    answered(found, said(10, 100))
    spend(clock, found, 2)
    answered(found, said(3, 100))
    answered(found, said(9, 100))
    assert spend(clock, found, 3) == 0
    assert spend(clock, found, 1) > 0


def test_a_refusal_holds_everybody() -> None:
    clock = Clock()
    found = budget(clock)
    found.acquire(LANE)
    found.hold(LANE, 30)
    answered(found, None)
    assert spend(clock, found, 1) == pytest.approx(30)


def test_lanes_have_counts_of_their_own_unless_the_hub_counts_them_as_one() -> None:
    clock = Clock()
    found = budget(clock)
    for lane, name, left in (("api", "api", 0), (LANE, "resolvers", 5)):
        found.acquire(lane)
        found.hear(lane, RateLimitInfo(name, remaining=left, reset_in_seconds=100, limit=9, window_seconds=300))
        found.release(lane)
    assert spend(clock, found, 2) == 0, "what is left of one count is nothing to the other"
    found.acquire("redirected")
    found.hear("redirected", RateLimitInfo("resolvers", 2, 100, 9, 300))
    assert spend(clock, found, 2) == 0
    found.release("redirected")
    found.acquire("redirected")
    assert clock.now == pytest.approx(100 + SLACK_S), "and two names of one count cannot spend it twice"


class Server:
    """Counts exactly, says so in whole seconds, and lets answers overtake each other."""

    def __init__(self, seed: int, quota: int, length: int) -> None:
        self.chance = random.Random(seed)
        self.quota, self.length = quota, length
        self.clock = Clock(self.chance.random() * self.length)
        self.budget = Budget(self.clock, self._while_waiting)
        self.used: Counter[int] = Counter()
        self._flying: deque[RateLimitInfo] = deque()

    def request(self) -> None:
        self.budget.acquire(LANE)
        window, ends = divmod(self.clock.now, self.length)
        self.used[int(window)] += 1
        left = max(0, self.quota - self.used[int(window)])
        self._flying.append(said(left, int(self.length - ends), self.quota))
        self.clock.now += self.chance.random() * self.chance.choice([0.001, 0.3])
        while self._flying and (self.used.total() == 1 or len(self._flying) > FLYING or self.chance.random() < 0.5):
            self._answer()

    def _answer(self) -> None:
        self._flying.rotate(self.chance.randrange(len(self._flying)))
        answered(self.budget, self._flying.popleft())

    def _while_waiting(self, seconds: float) -> None:
        """Whoever waits, the answers that are under way come in the meantime."""
        ends = self.clock.now + seconds
        while self._flying:
            self.clock.now += self.chance.random() * 0.3
            self._answer()
        self.clock.now = max(self.clock.now, ends)


@pytest.mark.parametrize("seed", range(40))
def test_a_window_is_never_overrun_however_answers_are_delayed(seed: int) -> None:
    chance = random.Random(seed)
    server = Server(seed, quota=chance.randint(1, 40), length=chance.randint(2, 20))
    for _ in range(300):
        server.request()
    assert max(server.used.values()) <= server.quota


def test_nearly_all_of_a_window_is_used() -> None:
    """Of the 500 that the Hub gives everybody, all but what two rounds of answers leave in doubt."""
    server = Server(1, quota=500, length=300)
    for _ in range(5_000):
        server.request()
    assert max(server.used.values()) <= 500
    assert sorted(server.used.values())[2] >= 500 - 2 * (FLYING + 1)
