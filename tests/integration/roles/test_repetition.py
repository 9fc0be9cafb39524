"""A step that is run again from the same start: what differs is kept, and nothing else."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import torch
from torch import Tensor, nn

from neuronqa.domain.outcome import Check, Kind
from neuronqa.worker.exchange import read_tensors
from neuronqa.workload.runnable import Runnable
from tests.integration.roles.families import small
from tests.integration.roles.played import Stage


class Unsteady(nn.Module):
    """Gives something else at every call, once it is told to."""

    moves = False

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 4)
        self.calls = count()

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.layer(x)
        return result * (1 + 0.01 * next(self.calls)) if Unsteady.moves else result


def unsteady() -> Runnable:
    generator = torch.Generator().manual_seed(1)
    inputs = {"x": torch.randn(5, 6, generator=generator)}
    return Runnable(module=Unsteady().train(), inputs=inputs, loss=lambda outputs: outputs.square().mean())


def again(folder: Path) -> set[str]:
    return {name for name in read_tensors(folder) if name.startswith("again/")}


def test_the_cpu_gives_the_same_twice(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "small", small)
    stage.record()
    stage.observe()
    assert again(stage.reference) == again(stage.device) == set()


def test_a_device_that_does_not_is_flaky(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "unsteady", unsteady)
    stage.record()
    Unsteady.moves = True
    try:
        found = stage.observe()[Check.PARITY]
    finally:
        Unsteady.moves = False
    assert found.outcome.kind is Kind.INCONCLUSIVE_FLAKY
    assert "again/loss" in again(stage.device)


def test_a_model_that_does_not_on_the_cpu_either_is_not_the_devices_fault(tmp_path: Path) -> None:
    Unsteady.moves = True
    try:
        stage = Stage(tmp_path, "unsteady", unsteady)
        stage.record()
        found = stage.observe()[Check.PARITY]
    finally:
        Unsteady.moves = False
    assert "again/loss" in again(stage.reference)
    assert found.outcome.kind is not Kind.INCONCLUSIVE_FLAKY
