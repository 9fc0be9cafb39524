"""What anybody may expect of a PyTorch accelerator, on the profile that limits nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from neuronqa.device.neuron import build
from neuronqa.device.neuron.selftest import behaviour, ranks
from neuronqa.device.neuron.selftest.behaviour import BEHAVIOURS, LIBRARIES, RANKED
from neuronqa.domain.build import BuildOrder

for part in ("tensors", "training", "ecosystem", "libraries", "ranks"):
    import_module(f"neuronqa.device.neuron.selftest.{part}")


def load() -> None:
    behaviour.load(BuildOrder(device="neuron", profile="ideal", binary=str(build.ensure().path)))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.full] if size > 2 else [])
        for name, size in RANKED.items()
        if name not in LIBRARIES
    ],
)
def test_the_device_behaves_on_several_ranks(name: str) -> None:
    assert ranks.run(name, load).error == ""


@pytest.mark.parametrize("name", [name for name in BEHAVIOURS if name not in LIBRARIES and name not in RANKED])
def test_the_device_behaves(name: str, in_child: Callable[[Callable[[], Any]], Any]) -> None:
    def run() -> None:
        load()
        BEHAVIOURS[name]()

    in_child(run)


def selftest(*patterns: str) -> str:
    """In a process of its own, where transformers was not imported before the device."""
    command = [sys.executable, "-m", "neuronqa.device.neuron.selftest", "--ops", "--behaviours", *patterns]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_accelerate_finds_the_device() -> None:
    told = selftest("accelerate_*")
    assert '"passed": 2, "failed": 0' in told.splitlines()[-1], told


@pytest.mark.full
def test_transformers_trains_compiles_and_generates_on_the_device() -> None:
    told = selftest("the_trainer_*", "a_pretrained_*")
    assert '"passed": 4, "failed": 0' in told.splitlines()[-1], told


def test_there_is_a_behaviour_for_everything_that_was_probed() -> None:
    assert len(BEHAVIOURS) >= 61
