"""How far a sweep is."""

from __future__ import annotations

import time

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from neuronqa.cli.display import Display
from neuronqa.sweep.driver import Progress


class SweepProgress(Display):
    """Shows stages and progress."""

    def stage(self, text: str) -> None:
        """Say what happens next."""
        self.write(f"{text} ...")

    def show(self, progress: Progress) -> None:
        """Show how far the sweep is."""
        if self.due():
            self.write(_panel(progress) if self.live else _line(progress))


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
