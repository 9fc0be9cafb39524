"""The fleet on a real local Ray: bounded, and never at a loss when a worker dies, hangs, gives up or is not born."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.full  # a dozen processes are started and killed


def scenes(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.ray_scenarios", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(scenes().splitlines()[-1])
    return facts


def test_workers_hold_two_jobs_each_and_every_job_comes_back_under_its_token(seen: dict[str, Any]) -> None:
    assert seen["work"] == {
        "capacity before": 0,
        "capacity": 4,
        "capacity when full": 0,
        "right": True,
        "capacity after": 4,
        "idle": 0,
    }


def test_a_fleet_is_laid_out_anew_for_wider_cases_and_back(seen: dict[str, Any]) -> None:
    assert seen["layout"] == {"capacity at once": 0, "capacity": 2, "next": True, "capacity after": 4}


def test_a_worker_that_dies_loses_all_it_had_in_hand_and_is_replaced(seen: dict[str, Any]) -> None:
    first, second = seen["death"]["lost"]
    assert first == second
    assert "Died" in first
    assert seen["death"]["next"]


def test_what_a_worker_gives_up_or_raises_is_lost_with_its_words(seen: dict[str, Any]) -> None:
    assert seen["surrender"]["given up"] == ["a reference was changed"]
    assert seen["surrender"]["raised"] == ["ValueError: a fault of ours"]
    assert seen["surrender"]["next"]


def test_a_worker_that_does_not_answer_in_time_is_killed_and_replaced(seen: dict[str, Any]) -> None:
    assert seen["silence"] == {"lost": ["the worker did not answer in time"], "next": True}


def test_workers_that_are_never_ready_are_an_environment_fault(seen: dict[str, Any]) -> None:
    assert seen["stillborn"].startswith("workers do not start: RuntimeError: no torch")
    assert seen["sleepy"].startswith("workers do not start: the worker did not start in time")


def test_what_befalls_a_worker_is_not_printed_into_a_sweeps_json() -> None:
    printed = json.loads(scenes("sweep"))
    assert printed["next"]
    assert "Died" in printed["lost"][0]
