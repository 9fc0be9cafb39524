"""What Ctrl-C does to a sweep."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def on_interrupt(stop: Callable[[str], None]) -> Iterator[None]:
    """First Ctrl-C (or SIGTERM): hand out nothing more. Second Ctrl-C: leave at once."""

    def handle(_number: int, _frame: FrameType | None) -> None:
        stop("interrupted")
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
