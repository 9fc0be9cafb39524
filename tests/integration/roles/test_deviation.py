"""The search names the operator that is wrong, and none where none is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from neuronqa.domain.observation import Observation, Progress
from neuronqa.domain.outcome import Check
from neuronqa.worker.exchange import read_observation
from neuronqa.workload.runnable import Runnable
from tests.integration.roles.families import FAMILIES, small
from tests.integration.roles.played import Stage, family


def searched(stage: Stage) -> Observation:
    found = read_observation(stage.folder / "search")
    assert found is not None
    assert found.failure is None
    return found


@pytest.mark.parametrize("twin", [None, "twin:wide"])
@pytest.mark.parametrize("variant", ["eager/fp32/train", "eager/bf16/train"])
@pytest.mark.parametrize("name", ["llama", "resnet"])
def test_a_right_device_has_no_operator_to_blame(tmp_path: Path, name: str, variant: str, twin: str | None) -> None:
    stage = family(tmp_path, name, variant)
    stage.record()
    stage.observe()
    stage.search(fault={"kind": twin} if twin else None)
    found = searched(stage)
    assert found.deviations == ()
    assert found.searched > 250


FAULTS: list[tuple[str, dict[str, Any], str]] = [
    ("bert", {"kind": "scale", "op": "aten::gelu_backward"}, "parity:scale(aten::gelu_backward float32)"),
    ("bert", {"kind": "scale", "op": "aten::mm", "factor": 1.001}, "parity:scale(aten::mm float32)"),
    ("bert", {"kind": "zero", "op": "aten::native_layer_norm"}, "parity:zero(aten::native_layer_norm float32)"),
    ("llama", {"kind": "sign", "op": "aten::silu"}, "parity:sign(aten::silu float32)"),
    ("llama", {"kind": "nan", "op": "aten::silu_backward"}, "parity:nan(aten::silu_backward float32)"),
    ("llama", {"kind": "scale", "op": "aten::sqrt", "factor": 1.01}, "parity:scale(aten::sqrt float32)"),
]


@pytest.mark.parametrize(("name", "fault", "outcome"), FAULTS)
def test_the_planted_operator_is_the_cause(tmp_path: Path, name: str, fault: dict[str, Any], outcome: str) -> None:
    stage = family(tmp_path, name)
    stage.record()
    stage.observe(fault=fault)
    found = stage.search(fault=fault)
    assert str(found[Check.PARITY].outcome) == outcome
    assert found[Check.TRAIN].outcome.detail == found[Check.PARITY].outcome.detail


def test_the_cause_is_the_same_in_another_model(tmp_path: Path) -> None:
    fault = {"kind": "scale", "op": "aten::mul.Tensor", "factor": 1.01}
    causes = set()
    for name in ("llama", "qwen2"):
        stage = family(tmp_path / name, name)
        stage.record()
        stage.observe(fault=fault)
        causes.add(str(stage.search(fault=fault)[Check.PARITY].outcome))
    assert causes == {"parity:scale(aten::mul.Tensor float32)"}


def test_an_operator_inside_a_compiled_graph_is_named(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "small", small, "compile/fp32/train")
    fault = {"kind": "scale", "op": "aten::tanh_backward", "factor": 1.1}
    stage.record()
    stage.observe("cpu:aot_eager", fault=fault)
    found = stage.search("cpu:aot_eager", fault=fault)
    assert str(found[Check.PARITY].outcome) == "parity:scale(aten::tanh_backward float32)"
    assert searched(stage).deviations[0].progress is Progress.BACKWARD


class Writer(nn.Module):
    """Writes through a view, in place, and through `out`."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 8)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.layer(x)
        scaled = hidden * 2
        scaled[:, :4].add_(1)
        ranked, _ = scaled.topk(3)
        return torch.cat([scaled, ranked], -1)


def writer() -> Runnable:
    generator = torch.Generator().manual_seed(1)
    inputs = {"x": torch.randn(5, 6, generator=generator)}
    return Runnable(module=Writer().train(), inputs=inputs, loss=lambda outputs: outputs.square().mean())


def test_writes_in_place_are_followed(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "writer", writer)
    stage.record()
    stage.observe()
    stage.search()
    assert searched(stage).deviations == ()
    fault = {"kind": "scale", "op": "aten::add_.*"}
    stage.observe(fault=fault)
    stage.search(fault=fault)
    assert [one.op for one in searched(stage).deviations] == ["aten::add_.Tensor"]


def test_a_search_that_runs_out_of_time_runs_on(tmp_path: Path) -> None:
    stage = family(tmp_path, "llama")
    stage.record()
    stage.observe()
    stage.search(seconds=0.0)
    assert searched(stage).searched == 0


def test_the_families_cover_ten_kinds_of_architecture() -> None:
    assert len(FAMILIES) == 10
