"""The live display of a sweep, on stderr; plain lines every few seconds where stderr is no terminal."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Final, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from neuronqa.sweep.driver import Progress

PLAIN_EVERY_S: Final = 15.0


class SweepProgress:
    """Shows stages and progress; a context manager around the whole sweep."""

    def __init__(self, console: Console) -> None:
        self._console = console
        # Refreshed by hand: a thread of its own would keep the process from moving into a private network.
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
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

    def stage(self, text: str) -> None:
        """Say what happens next."""
        if self._live is not None:
            self._live.update(Text(f"{text} ..."), refresh=True)
        else:
            self._console.print(f"{escape(text)} ...")

    def show(self, progress: Progress) -> None:
        """Show how far the sweep is."""
        if self._live is not None:
            self._live.update(_panel(progress), refresh=True)
        elif time.monotonic() - self._printed >= PLAIN_EVERY_S:
            self._printed = time.monotonic()
            self._console.print(_line(progress))


def eta_s(progress: Progress, now: float) -> float | None:
    """Seconds until the queue or the budget is used up, whichever comes first; None before the first result."""
    elapsed = now - progress.started
    left = None if progress.budget_s is None else max(0.0, progress.budget_s - elapsed)
    if progress.done:
        queue = (progress.planned - progress.done) * elapsed / progress.done
        return queue if left is None else min(queue, left)
    return left


def _panel(progress: Progress) -> RenderableType:
    bar = ProgressBar(total=max(1, progress.planned), completed=progress.done, width=40)
    head = Table.grid(padding=(0, 1))
    head.add_row(bar, Text(_line(progress)))
    return Group(head, Text(_failures(progress), style="dim"))


def _line(progress: Progress) -> str:
    elapsed = time.monotonic() - progress.started
    rate = progress.done / elapsed * 60 if elapsed > 0 else 0.0
    eta = eta_s(progress, time.monotonic())
    parts = [
        f"{progress.done:,} / {progress.planned:,} cases",
        f"{rate:.1f}/min",
        f"ETA {_clock(eta)}",
        f"{progress.workers} workers",
    ]
    if progress.draining:
        parts.append(f"draining ({progress.draining})")
    if progress.control_misses:
        parts.append(f"{progress.control_misses} controls missed")
    return "  ".join(parts)


def _failures(progress: Progress) -> str:
    if not progress.failures:
        return "no failures yet"
    stages = (f"{stage} {n}" for stage, n in progress.failures.most_common())
    return "failing workloads by first stage: " + "  ".join(stages)


def _clock(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}"
