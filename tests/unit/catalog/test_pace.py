"""How long a pull will take, as far as its pace tells."""

from __future__ import annotations

import time

import pytest

from neuronqa.catalog.hub.progress import Pace, Progress


def test_what_is_left_is_told_from_the_pace_of_this_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an earlier run had fetched says nothing about how fast this one is."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    told: list[Progress] = []
    pace = Pace(told.append, total=1_000, done=900)
    for _ in range(40):
        now[0] += 3.0
        pace.step(waited_s=7.0)
    assert [(one.done, one.eta_s) for one in told[:2]] == [(901, 99 * 3.0), (902, 98 * 3.0)]
    assert {one.stage for one in told} == {"configs"}
    assert told[-1].waited_s == 7.0


def test_a_fast_pull_is_reported_twice_a_second_and_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    told: list[Progress] = []
    pace = Pace(told.append, total=1_000, done=0)
    for _ in range(1_000):
        now[0] += 0.01
        pace.step(0.0)
    assert 18 <= len(told) <= 21
    assert (told[-1].done, told[-1].eta_s) == (1_000, 0.0)
