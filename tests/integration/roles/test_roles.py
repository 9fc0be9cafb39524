"""Reference child, device child and judge together, on real modules on the CPU."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from neuronqa.device.torch_device import TorchAdapter
from neuronqa.domain.identity import canonical_json
from neuronqa.domain.observation import Progress
from neuronqa.domain.outcome import Check, Kind
from neuronqa.domain.policy import Thresholds
from neuronqa.errors import BadInput
from neuronqa.worker.exchange import read_tensors
from neuronqa.workload.runnable import BuildFailure, Runnable
from tests.integration.roles.families import FAMILIES, small
from tests.integration.roles.played import DONE, STEPS, Stage, family


def spoilt(found: dict[Check, Any]) -> dict[str, str]:
    """What did not pass, apart from what the CPU cannot show."""
    return {
        check.value: str(one.outcome)
        for check, one in found.items()
        if not one.outcome.kind.value.endswith(":pass") and one.outcome.kind is not Kind.INCONCLUSIVE_NOT_OBSERVABLE
    }


@pytest.mark.parametrize("variant", ["eager/fp32/train", "eager/bf16/train", "eager/fp32/infer"])
@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_on_the_cpu_itself_passes(tmp_path: Path, name: str, variant: str) -> None:
    stage = family(tmp_path, name, variant)
    assert [str(one.outcome) for one in stage.record()] == ["build:pass", "inputs:pass", "reference:pass"]
    assert spoilt(stage.observe()) == {}


def test_the_cpu_agrees_with_itself_to_the_bit(tmp_path: Path) -> None:
    stage = family(tmp_path, "bert")
    stage.record()
    stage.observe()
    device, reference = read_tensors(stage.device), read_tensors(stage.reference)
    for name, array in device.items():
        same = reference[name][0] if name.startswith("curve/") else reference[f"same/{name}"]
        np.testing.assert_array_equal(array, same, err_msg=name)


FAULTS = [
    ("scale", "aten::gelu_backward", "parity:scale(grad)"),
    ("zero", "aten::gelu_backward", "parity:zero(grad)"),
    ("sign", "aten::gelu_backward", "parity:sign(grad)"),
    ("nan", "aten::gelu_backward", "parity:nan(grad)"),
    ("scale", "aten::gelu", "parity:scatter(output)"),
    ("zero", "aten::native_layer_norm", "parity:zero(output)"),
]


@pytest.mark.parametrize(("kind", "op", "outcome"), FAULTS)
def test_a_fault_planted_from_outside_is_found(tmp_path: Path, kind: str, op: str, outcome: str) -> None:
    stage = family(tmp_path, "bert")
    stage.record()
    found = stage.observe(fault={"kind": kind, "op": op})
    assert str(found[Check.PARITY].outcome) == outcome
    assert found[Check.TRAIN].outcome.kind.stage.value == "train"
    assert found[Check.TRAIN].outcome.kind is not Kind.TRAIN_PASS


def test_a_fault_in_the_optimizer_alone_is_found_in_the_update(tmp_path: Path) -> None:
    stage = family(tmp_path, "llama")
    stage.record()
    found = stage.observe(fault={"kind": "scale", "op": "aten::sqrt", "factor": 1.01})
    assert found[Check.PARITY].outcome.detail == "update"
    assert str(found[Check.TRAIN].outcome) == "train:update-norm"


def test_a_compiled_model_is_captured_compared_and_proven_to_have_run(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "small", small, "compile/fp32/train")
    stage.record()
    marks: list[Progress] = []
    found = stage.observe("cpu:aot_eager", marks=marks)
    assert spoilt(found) == {}
    use = stage.seen().graph
    assert use is not None
    assert (use.graphs, use.backend_calls, use.executions) == (1, 1, STEPS), "repeating a step is not counted"
    assert marks[marks.index(Progress.FORWARD) : marks.index(Progress.OPTIMIZER)] == [
        Progress.FORWARD,
        Progress.COMPILE,
        Progress.FORWARD,
        Progress.BACKWARD,
        Progress.COMPILE,
        Progress.BACKWARD,
    ]


def test_a_fault_inside_a_compiled_graph_is_found(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "small", small, "compile/fp32/train")
    stage.record()
    found = stage.observe("cpu:aot_eager", fault={"kind": "scale", "op": "aten::tanh_backward", "factor": 1.1})
    assert found[Check.GRAPH].outcome.kind is Kind.GRAPH_PASS
    assert str(found[Check.PARITY].outcome) == "parity:scale(grad)"


class Branching(nn.Module):
    """Branches on data, twice the same way."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, m: Tensor) -> Tensor:
        x: Tensor = self.layer(m)
        if (m == 0).any():
            x = x * 2
        return x


def branching() -> Runnable:
    generator = torch.Generator().manual_seed(1)
    inputs = {"m": torch.randn(3, 4, generator=generator)}
    return Runnable(module=Branching(), inputs=inputs, loss=lambda outputs: outputs.square().mean())


def test_branching_on_data_is_one_graph_break_with_id_reason_and_line(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "branching", branching, "compile/fp32/train")
    stage.record()
    found = stage.observe("cpu:aot_eager")[Check.GRAPH]
    assert str(found.outcome) == "graph:break(GB0170 Data-dependent branching)"
    assert found.measure == 1
    assert found.evidence["breaks"][0]["frame"].startswith("test_roles.py:")
    assert found.evidence["breaks"][0]["frame"].endswith(" forward")


class Eager(TorchAdapter):
    """A device whose compiler raises."""

    def load(self, order: Any, last_op_file: str = "") -> Any:
        device: Any = super().load(order, last_op_file)

        def broken(*_: Any) -> Any:
            raise RuntimeError("no such instruction")

        device.compile_backend = lambda: broken
        return device


def test_a_compiler_that_raises_fails_compile(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "small", small, "compile/fp32/train")
    stage.record()
    found = stage.observe("cpu", adapter=Eager)
    assert str(found[Check.COMPILE].outcome) == "compile:error(RuntimeError)"
    assert str(found[Check.RUN].outcome) == "not-run:blocked(compile)"


def test_a_compiler_error_that_dynamo_swallows_is_not_a_pass(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "small", small, "compile/fp32/train")
    stage.record()
    with torch._dynamo.config.patch(suppress_errors=True):
        found = stage.observe("cpu", adapter=Eager)
    assert str(found[Check.COMPILE].outcome) == "compile:not-compiled(backend not called)"


class Raising(nn.Module):
    """Raises on its second forward pass in one process, so that only the device child sees it."""

    passes = 0

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.error = error

    def forward(self, x: Tensor) -> Tensor:
        Raising.passes += 1
        if Raising.passes == self.limit:
            raise self.error
        result: Tensor = self.layer(x)
        return result

    limit = -1


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ValueError("no"), "run:error(ValueError)"),
        (SystemExit(3), "run:exit(exit 3)"),
        (MemoryError(), "run:oom"),
        (
            NotImplementedError("Could not run 'aten::cumsum' with arguments from the 'x' backend."),
            "run:unsupported-op(aten::cumsum)",
        ),
    ],
)
def test_what_a_model_raises_on_the_device_is_an_outcome(
    tmp_path: Path, error: BaseException, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raising() -> Runnable:
        return Runnable(module=Raising(error), inputs={"x": torch.ones(2, 4)}, loss=lambda out: out.square().mean())

    stage = Stage(tmp_path, "raising", raising)
    stage.record()
    monkeypatch.setattr(Raising, "limit", Raising.passes + 3)
    found = stage.observe()
    assert str(found[Check.RUN].outcome) == outcome
    assert str(found[Check.PARITY].outcome) == "not-run:blocked(run)"
    assert "test_roles.py" in found[Check.RUN].evidence["traceback"]


def _unfit(outputs: Any) -> Tensor:
    return torch.ones_like(outputs["logits"].detach()).sum()


PECULIAR = {
    "no gradient": (_unfit, "reference:no-gradient"),
    "NaN": (lambda outputs: outputs["logits"].sum() * float("nan"), "reference:non-finite(loss)"),
    "raises": (lambda outputs: outputs["absent"], "reference:error(KeyError)"),
}


@pytest.mark.parametrize("name", PECULIAR)
def test_a_reference_that_is_unfit_says_so_and_blocks_the_device(tmp_path: Path, name: str) -> None:
    loss, outcome = PECULIAR[name]

    def peculiar() -> Runnable:
        whole = small()
        return Runnable(module=whole.module, inputs=whole.inputs, loss=loss)

    stage = Stage(tmp_path, "peculiar", peculiar)
    assert str(stage.record()[2].outcome) == outcome
    assert {str(one.outcome) for one in stage.judge().values()} == {"not-run:blocked(reference)"}


def test_a_workload_that_cannot_be_built_says_why(tmp_path: Path) -> None:
    def vacuous() -> Runnable:
        raise BuildFailure(Kind.BUILD_VACUOUS, "no layers")

    stage = Stage(tmp_path, "vacuous", vacuous)
    assert str(stage.record()[0].outcome) == "build:vacuous(no layers)"


def test_outputs_of_any_nesting_are_compared(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "small", small)
    stage.record()
    stage.observe()
    names = {name for name in read_tensors(stage.device) if name.startswith("output/")}
    assert names == {"output/logits", "output/hidden.0", "output/choice", "output/rate"}


def test_both_roles_start_from_the_same_bits_whatever_the_builder_draws(tmp_path: Path) -> None:
    draws = iter((1, 2))

    def unsteady() -> Runnable:
        torch.manual_seed(next(draws))
        return small()

    stage = Stage(tmp_path, "unsteady", unsteady)
    stage.record()
    assert spoilt(stage.observe()) == {}


def test_the_judge_answers_json_lines_without_torch(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "small", small)
    stage.record()
    stage.observe()
    exit_json = canonical_json(asdict(DONE))
    shared = f'"reference": "{stage.reference}", "exit": {exit_json}'
    thresholds = json.dumps(asdict(Thresholds()))
    asked = f'"device": "{stage.device}", "variant": "eager/fp32/train", "thresholds": {thresholds}'
    lines = [
        f'{{"role": "reference", {shared}}}',
        f'{{"role": "device", {shared}, {asked}}}',
        '{"role": "device"}',
    ]
    code = "import sys; from neuronqa.worker import judge; judge.main(); assert 'torch' not in sys.modules"
    child = subprocess.run([sys.executable, "-c", code], input="\n".join(lines), capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
    replies = [json.loads(line) for line in child.stdout.splitlines()]
    assert [one["outcome"] for one in replies[0]["findings"]] == ["build:pass", "inputs:pass", "reference:pass"]
    assert [one["check"] for one in replies[1]["findings"]] == ["load", "run", "fallback", "state", "parity", "train"]
    assert "KeyError" in replies[2]["error"]


def test_a_device_nobody_knows_is_bad_input(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "small", small)
    stage.record()
    with pytest.raises(BadInput, match="no device named 'tpu'"):
        stage.observe("tpu")
    with pytest.raises(BadInput, match="no fault of kind"):
        stage.observe("cpu", fault={"kind": "gremlin"})
