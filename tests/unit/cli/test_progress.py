"""The display of a running sweep: what it says, and that it starts no thread."""

from __future__ import annotations

import threading
from collections import Counter
from io import StringIO
from types import SimpleNamespace

import pytest
from rich.console import Console

from neuronqa.cli import display as display_module
from neuronqa.cli import progress as progress_module
from neuronqa.cli.progress import SweepProgress, eta_s
from neuronqa.sweep.driver import Progress
from tests.scripted import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (display_module, progress_module):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=made))
    return made


def shown(*moments: Progress | str, terminal: bool) -> str:
    file = StringIO()
    console = Console(file=file, force_terminal=terminal, width=150, color_system=None)
    with SweepProgress(console) as display:
        for moment in moments:
            display.stage(moment) if isinstance(moment, str) else display.show(moment)
    return file.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_it_says_how_far_it_is_and_what_fails(clock: Clock, terminal: bool) -> None:
    progress = Progress(planned=1200, done=60, workers=2, started=clock.now, failures=Counter(run=3, native=7))
    progress.control_misses = 1
    clock.now += 120
    said = shown("Planning [bold]x", progress, terminal=terminal)
    assert "Planning [bold]x ..." in said
    assert "60 / 1,200 cases  30.0/min  ETA 38:00  2 workers  1 controls missed" in said
    assert ("native 7  run 3" in said) == terminal


def test_a_terminal_is_refreshed_without_a_thread() -> None:
    before = threading.active_count()
    file = StringIO()
    with SweepProgress(Console(file=file, force_terminal=True, width=100)) as display:
        display.stage("Starting")
        assert "Starting" in file.getvalue()
        assert threading.active_count() == before


def test_plain_lines_come_every_few_seconds_only(clock: Clock) -> None:
    progress = Progress(planned=10, started=clock.now)
    file = StringIO()
    with SweepProgress(Console(file=file, width=100)) as display:
        for _ in range(100):
            clock.now += 1
            display.show(progress)
    assert (
        100 / display_module.PLAIN_EVERY_S - 1 <= file.getvalue().count("\n") <= 100 / display_module.PLAIN_EVERY_S + 1
    )


def test_why_nothing_more_is_handed_out_is_said(clock: Clock) -> None:
    progress = Progress(planned=10, started=clock.now, draining="interrupted")
    assert "draining (interrupted)" in shown(progress, terminal=True)


@pytest.mark.parametrize(
    ("done", "elapsed", "budget", "expected"),
    [
        (0, 10.0, None, None),
        (0, 10.0, 60.0, 50.0),
        (5, 10.0, None, 10.0),
        (5, 10.0, 12.0, 2.0),
        (5, 10.0, 600.0, 10.0),
        (10, 10.0, None, 0.0),
        (5, 70.0, 60.0, 0.0),
    ],
)
def test_the_end_is_when_the_queue_or_the_budget_is_used_up(
    done: int, elapsed: float, budget: float | None, expected: float | None
) -> None:
    progress = Progress(planned=10, done=done, started=0.0, budget_s=budget)
    assert eta_s(progress, elapsed) == expected
