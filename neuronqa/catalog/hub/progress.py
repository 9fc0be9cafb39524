"""What a person sees of a pull."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

RESUME: Final = "what was pulled is kept; the same command goes on from there"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a pull is."""

    stage: str
    """`listing` or `configs`."""
    done: int
    total: int
    eta_s: float | None
    waited_s: float
    """Spent waiting for the Hub's rate limit."""


Report = Callable[[Progress], None]


class Pace:
    """Reports how fast configs come, at most twice a second."""

    def __init__(self, report: Report, total: int, done: int) -> None:
        self._report = report
        self._total = total
        self._done = self._before = done
        self._began = time.monotonic()
        self._next = 0.0

    def step(self, waited_s: float) -> None:
        self._done += 1
        now = time.monotonic()
        if now < self._next and self._done < self._total:
            return
        self._next = now + 0.5
        rate = (self._done - self._before) / max(now - self._began, 1e-6)
        left = (self._total - self._done) / rate
        self._report(Progress(stage="configs", done=self._done, total=self._total, eta_s=left, waited_s=waited_s))
