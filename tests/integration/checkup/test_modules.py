"""Plain modules of every kind get the right ladder: green, or the blocker that is really there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from neuronqa.checkup.examine import Examiner
from neuronqa.checkup.target import of_factory
from neuronqa.domain.outcome import Rung, Standing
from neuronqa.sweep.policies import load_policy
from tests.integration.checkup.modules import FACTORIES

FILE = Path(__file__).with_name("modules.py")
QUICK = load_policy("quick")
BLOCKED = {
    "elman": "compile:not-compiled",
    "lstm": "compile:not-compiled",
    "gru": "compile:not-compiled",
    "branch_on_data": "graph:break",
    "loop_on_data": "graph:break",
    "shape_from_data": "graph:break",
    "prints": "graph:break",
    "swallows_errors": "compile:error",
    "through_numpy": "run:error",
    "constant_on_the_cpu": "run:error",
    "pointer_to_memory": "run:error",
}
"""The first blocker of each that is not sound on a device without limits; the others are green."""


@pytest.fixture(scope="module")
def ideal() -> Iterator[Examiner]:
    with Examiner(profile="ideal") as made:
        yield made


def test_there_are_enough_of_them() -> None:
    assert len(FACTORIES) >= 50
    assert set(BLOCKED) <= set(FACTORIES)


@pytest.mark.full
@pytest.mark.parametrize("name", FACTORIES)
def test_a_module_gets_the_right_ladder(ideal: Examiner, name: str) -> None:
    checkup = ideal.examine(of_factory(FILE, name), QUICK)
    if name not in BLOCKED:
        assert checkup.green, str(checkup)
        return
    first = checkup.first
    assert first is not None, str(checkup)
    assert first.outcome.kind.value == BLOCKED[name], str(checkup)
    assert first.place is not None, str(checkup)
    assert first.place.file == str(FILE)
    below = [state for state in checkup.rungs if state.rung.height < first.rung.height]
    assert all(state.standing is Standing.PASS for state in below)
    assert {state.rung for state in below} >= {Rung.REGISTERED, Rung.ELIGIBLE, Rung.BUILDS}
