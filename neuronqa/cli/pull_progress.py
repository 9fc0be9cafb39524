"""The display of a pull, on stderr; plain lines every few seconds where stderr is no terminal."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from neuronqa.catalog.hub.progress import Progress

PLAIN_EVERY_S: Final = 15.0


class PullProgress:
    """Shows how far a pull is; a context manager around it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, transient=True, refresh_per_second=4) if console.is_terminal else None
        self._printed = 0.0

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, progress: Progress) -> None:
        if self._live is not None:
            self._live.update(Text(line(progress)))
        elif time.monotonic() - self._printed >= PLAIN_EVERY_S or progress.done >= progress.total:
            self._printed = time.monotonic()
            self._console.print(line(progress), markup=False)


def line(progress: Progress) -> str:
    """`configs 1,200 / 40,000  ETA 12:30  waited 5:00 for the Hub's rate limit`"""
    parts = [f"{progress.stage} {progress.done:,} / {progress.total:,}"]
    if progress.eta_s is not None:
        parts.append(f"ETA {clock(progress.eta_s)}")
    if progress.waited_s >= 1:
        parts.append(f"waited {clock(progress.waited_s)} for the Hub's rate limit")
    return "  ".join(parts)


def clock(seconds: float) -> str:
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"
