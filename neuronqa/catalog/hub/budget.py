"""How many requests may be sent, as the Hub's own headers say: one budget for all connections.

The Hub counts requests of a kind in fixed windows and tells with every response how many are left (`r`) and in how many
seconds the count starts anew (`t`): `RateLimit: "api";r=42;t=171`, `RateLimit-Policy: "fixed window";"api";q=500;w=300`
(https://huggingface.co/docs/hub/rate-limits). Nothing is sent that would go beyond it. What an address counts as is
known only from its answers, so addresses are sent in lanes, and lanes that the Hub counts as one share one count.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from huggingface_hub.utils import RateLimitInfo

SLACK_S: Final = 1.0
"""`t` is in whole seconds, so a window may end up to one later than it says."""


@dataclass
class _Window:
    """What is known of one of the Hub's counts. `left` is None while nothing is."""

    left: int | None = None
    resets: float = 0.0
    quota: int | None = None
    flying: int = 0
    told: bool = False
    """Has an answer come?"""

    def begin_anew(self, now: float) -> None:
        """Past the end of the window the quota is there again, less what is still under way."""
        if self.left is not None and now >= self.resets + SLACK_S:
            self.left = None if self.quota is None else self.quota - self.flying

    def believe(self, info: RateLimitInfo, now: float) -> None:
        """Believe the smaller count within a window, and the server's in a new one, less what else is under way."""
        resets = now + info.reset_in_seconds
        self.quota = info.limit if info.limit is not None else self.quota
        if self.left is None or resets > self.resets + 2 * SLACK_S:
            self.left = max(0, info.remaining - max(0, self.flying - 1))
            self.resets = resets
        else:
            self.left = min(self.left, info.remaining)
            self.resets = max(resets, self.resets)


class Budget:
    """Requests left, shared by threads. Before a lane's first answer one request goes out in it alone."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Condition()
        self._lanes: defaultdict[str, _Window] = defaultdict(_Window)
        self._named: dict[str, _Window] = {}
        self.waited_s = 0.0
        """Seconds spent waiting for a window, over all threads."""

    def acquire(self, lane: str) -> None:
        """Wait until one more request may be sent, and count it. :meth:`release` must follow."""
        while True:
            with self._lock:
                pause = self._take(lane)
            if pause is None:
                return
            self.waited_s += pause
            self._sleep(pause)

    def hear(self, lane: str, info: RateLimitInfo | None) -> None:
        """What the headers of a response say, as soon as they are there: its body may take minutes."""
        with self._lock:
            if info is not None:
                self._window(lane, info.resource_type).believe(info, self._clock())
            self._lanes[lane].told = True
            self._lock.notify_all()

    def release(self, lane: str) -> None:
        """A request is over, whatever came of it."""
        with self._lock:
            self._lanes[lane].flying -= 1
            self._lanes[lane].told = True
            self._lock.notify_all()

    def hold(self, lane: str, seconds: float) -> None:
        """Send nothing in a lane for so long: a 429 without a count, or `Retry-After`."""
        with self._lock:
            window = self._lanes[lane]
            window.left = 0
            window.resets = max(window.resets, self._clock() + seconds - SLACK_S)

    def _take(self, lane: str) -> float | None:
        """Count a request and return None, or return how long to wait."""
        window = self._lanes[lane]
        if not window.told and window.flying:
            self._lock.wait_for(lambda: window.told or not window.flying, timeout=1.0)
            return 0.0
        now = self._clock()
        window.begin_anew(now)
        if window.left is not None and window.left <= 0:
            return max(0.01, window.resets + SLACK_S - now)
        if window.left is not None:
            window.left -= 1
        window.flying += 1
        return None

    def _window(self, lane: str, name: str) -> _Window:
        """The count that the Hub calls so. The first name heard in a lane decides which count it draws on."""
        own = self._lanes[lane]
        unnamed = all(own is not other for other in self._named.values())
        named = self._named.setdefault(name, own if unnamed else _Window())
        if unnamed and own is not named:
            named.flying += own.flying
            self._lanes[lane] = named
        return named
