"""How far a pull is."""

from __future__ import annotations

from neuronqa.catalog.hub.progress import Progress
from neuronqa.cli.display import Display


class PullProgress(Display):
    """Shows how far a pull is."""

    def show(self, progress: Progress) -> None:
        if self.due() or progress.done >= progress.total:
            self.write(line(progress))


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
