"""A step of right operators is acquitted only where it is the model's own."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from neuronqa.domain.outcome import Check, Kind
from neuronqa.worker.exchange import read_observation
from neuronqa.workload.runnable import Runnable
from tests.integration.roles.families import FAMILIES
from tests.integration.roles.played import Stage, family

Twist = Callable[[Tensor], Tensor]


def parted(stage: Stage) -> str:
    found = read_observation(stage.folder / "search")
    assert found is not None
    assert found.failure is None
    assert found.searched > 0
    assert found.unanswered == 0
    assert found.deviations == ()
    return found.parted


@pytest.mark.parametrize(
    ("name", "variant"),
    [("mixtral", "eager/fp32/train"), ("resnet", "eager/bf16/train"), ("gpt2", "eager/fp32/generate")]
    + [pytest.param(name, "eager/fp32/train", marks=pytest.mark.full) for name in FAMILIES],
)
def test_a_step_of_another_arithmetic_is_the_models_own(tmp_path: Path, name: str, variant: str) -> None:
    stage = family(tmp_path, name, variant)
    stage.record()
    stage.observe()
    stage.search(fault={"kind": "twin:reordered"})
    assert parted(stage) == ""


class Swayed(nn.Module):
    """Does something else to what it hides, in the second and third of its instances: the device's."""

    def __init__(self, twist: Twist) -> None:
        super().__init__()
        self.first, self.last, self.twist = nn.Linear(6, 8), nn.Linear(8, 4), twist

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.last(self.twist(torch.tanh(self.first(x))))
        return result


def swayed(twist: Twist) -> Callable[[], Runnable]:
    made = count()

    def factory() -> Runnable:
        generator = torch.Generator().manual_seed(1)
        abroad = next(made) in (1, 2)
        module = Swayed(twist if abroad else lambda hidden: hidden).train()
        inputs = {"x": torch.randn(5, 6, generator=generator)}
        return Runnable(module=module, inputs=inputs, loss=lambda outputs: outputs.square().mean())

    return factory


def overwritten(hidden: Tensor) -> Tensor:
    """Memory changes behind everybody's back, in a part that is read by another view than was written."""
    ctypes.memset(hidden.data_ptr() + 3, 7, 1)
    return hidden[:, :]


class Bent(torch.autograd.Function):
    @staticmethod
    def forward(_ctx: Any, hidden: Tensor) -> Tensor:
        return hidden.view_as(hidden)

    @staticmethod
    def backward(_ctx: Any, *grad: Any) -> Any:
        return grad[0] * 1.5


TWISTS: list[tuple[str, Any]] = [
    ("aten::mul.Tensor on the device", lambda hidden: hidden * 1.5),
    ("aten::mul.Tensor on the device", Bent.apply),
    ("aten::clone on the device", lambda hidden: hidden.T.reshape(5, 8)),
    ("is given something else", lambda hidden: hidden.as_strided((5, 8), (8, 1), 0).as_strided((5, 8), (0, 1), 8)),
]


@pytest.mark.parametrize(("words", "twist"), TWISTS)
def test_right_operators_that_are_not_the_models_own_do_not_acquit(tmp_path: Path, words: str, twist: Twist) -> None:
    stage = Stage(tmp_path, "swayed", swayed(twist))
    stage.record()
    assert stage.observe()[Check.PARITY].outcome.kind is not Kind.PARITY_PASS
    found = stage.search()[Check.PARITY]
    assert found.outcome.detail in ("output", "grad")
    assert found.outcome.kind is not Kind.PARITY_PASS
    assert words in parted(stage)


def test_memory_that_changes_between_operators_is_to_blame_itself(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "swayed", swayed(overwritten))
    stage.record()
    stage.observe()
    assert stage.search()[Check.PARITY].outcome.detail == "memory float32"
