"""Trainers give on the device `ideal` the losses they give on the CPU, to the last digit they print."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from neuronqa import bundled
from neuronqa.device.neuron.selftest.forked import together
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.workload import ScriptSpec
from neuronqa.workload.scripts import Place, script

FILE = bundled.folder("catalogs") / "recipes" / "training.py"
RANKS = 2
PRINTED = 4
"""Decimals of a loss that trainers print."""


def losses(device: str, trainer: str, family: str, folder: Path) -> list[str]:
    ended = together([partial(_rank, device, trainer, family, folder, rank) for rank in range(RANKS)])
    assert [one.error for one in ended] == [""] * RANKS
    return [one.answer for one in ended]


def _rank(device: str, trainer: str, family: str, folder: Path, rank: int) -> str:
    os.chdir(folder)
    torch.set_num_threads(1)
    place = Place(rank=rank, ranks=RANKS, device=torch.device("cpu"), dtype=torch.float32, store=str(folder / "store"))
    place.announce()
    if device == "neuron":
        from neuronqa.device.neuron.adapter import NeuronAdapter

        loaded = NeuronAdapter().load(BuildOrder(device="neuron", profile="ideal"))
        loaded.offer_names()
        place = replace(place, device=loaded.torch_device)
    spec = ScriptSpec(
        source="recipes/training.py",
        source_sha256=hashlib.sha256(FILE.read_bytes()).hexdigest(),
        function="train",
    )
    torch.manual_seed(0)
    found = script(spec)(place, trainer=trainer, family=family)["loss"]
    return " ".join(f"{loss:.{PRINTED}f}" for loss in found.tolist())


@pytest.mark.full
@pytest.mark.parametrize("family", ["qwen3", "gpt-oss"])
@pytest.mark.parametrize("trainer", ["ddp", "fsdp2", "accelerate", "hf-trainer"])
def test_losses_on_the_ideal_device_are_those_of_the_cpu(tmp_path: Path, trainer: str, family: str) -> None:
    sides = {}
    for device in ("cpu", "neuron"):
        folder = tmp_path / device
        folder.mkdir()
        sides[device] = losses(device, trainer, family, folder)
    assert sides["neuron"] == sides["cpu"]
    first, *_, last = map(float, sides["cpu"][0].split())
    assert last < first
