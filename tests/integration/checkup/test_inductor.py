"""The C++ compiler of inductor does its work inside a child that may write nowhere but in its own folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuronqa.checkup.examine import Examiner
from neuronqa.checkup.target import of_factory
from neuronqa.domain.outcome import Rung, Standing
from neuronqa.sweep.policies import load_policy

FILE = Path(__file__).with_name("modules.py")


@pytest.mark.full
def test_a_compiled_module_runs_and_trains_as_on_the_cpu() -> None:
    with Examiner("cpu:inductor", "trn2-sdk2.33") as examiner:
        checkup = examiner.examine(of_factory(FILE, "perceptron"), load_policy("quick"))
    standing = {one.rung: one.standing for one in checkup.rungs}
    assert [standing[rung] for rung in (Rung.RUNS, Rung.FULL_GRAPH, Rung.PARITY, Rung.TRAINS)] == [Standing.PASS] * 4
    assert str(checkup.rungs[[one.rung for one in checkup.rungs].index(Rung.NATIVE)].outcome) == (
        "inconclusive:not-observable"
    )
