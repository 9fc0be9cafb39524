"""How many requests may be sent, as the Hub's own headers say: one budget for all connections.

The Hub counts requests of a kind in fixed windows and tells with every response how many are left (`r`) and in how many
seconds the count starts anew (`t`): `RateLimit: "api";r=42;t=171`, `RateLimit-Policy: "fixed window";"api";q=500;w=300`
(https://huggingface.co/docs/hub/rate-limits). Nothing is sent that would go beyond it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from huggingface_hub.utils import RateLimitInfo

SLACK_S: Final = 1.0
"""`t` is in whole seconds, so a window may end up to one later than it says."""


class Budget:
    """Requests left in the window, shared by threads. Before the first answer one request goes out alone."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Condition()
        self._left: int | None = None
        self._resets = 0.0
        self._quota: int | None = None
        self._flying = 0
        self._told = False
        self.waited_s = 0.0
        """Seconds spent waiting for a window, over all threads."""

    def acquire(self) -> None:
        """Wait until one more request may be sent, and count it. :meth:`release` must follow."""
        while True:
            with self._lock:
                pause = self._take()
            if pause is None:
                return
            self.waited_s += pause
            self._sleep(pause)

    def hear(self, info: RateLimitInfo | None) -> None:
        """What the headers of a response say, as soon as they are there: its body may take minutes."""
        with self._lock:
            if info is not None:
                self._believe(info, self._flying - 1)
            self._told = True
            self._lock.notify_all()

    def release(self) -> None:
        """A request is over, whatever came of it."""
        with self._lock:
            self._flying -= 1
            self._told = True
            self._lock.notify_all()

    def hold(self, seconds: float) -> None:
        """Send nothing for so long: a 429 without a count, or `Retry-After`."""
        with self._lock:
            self._left = 0
            self._resets = max(self._resets, self._clock() + seconds - SLACK_S)

    def _take(self) -> float | None:
        """Count a request and return None, or return how long to wait."""
        now = self._clock()
        if not self._told and self._flying:
            self._lock.wait_for(lambda: self._told or not self._flying, timeout=1.0)
            return 0.0
        if self._left is not None and now >= self._resets + SLACK_S:
            self._left = None if self._quota is None else self._quota - self._flying
        if self._left is not None and self._left <= 0:
            return max(0.01, self._resets + SLACK_S - now)
        if self._left is not None:
            self._left -= 1
        self._flying += 1
        return None

    def _believe(self, info: RateLimitInfo, flying: int) -> None:
        """Believe the smaller count within a window, and the server's in a new one, less what is still under way."""
        resets = self._clock() + info.reset_in_seconds
        self._quota = info.limit if info.limit is not None else self._quota
        fresh = self._left is None or resets > self._resets + 2 * SLACK_S
        said = info.remaining - (flying if fresh else 0)
        self._left = max(0, said) if fresh or self._left is None else min(self._left, info.remaining)
        self._resets = max(resets, self._resets) if not fresh else resets
