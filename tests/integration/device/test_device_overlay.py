"""Overlays: a fallback becomes native, and nobody cheats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from neuronqa.device.neuron import build, declared, vector
from neuronqa.device.neuron.adapter import NeuronAdapter
from neuronqa.domain.build import BuildOrder
from neuronqa.errors import BadInput

HEADER = "import torch\nfrom neuronqa.device.neuron.overlay import kernel\n\n"
MAXIMUM = HEADER + '@kernel("aten::maximum")\ndef maximum(a, b):\n    return torch.where(a > b, a, b)\n'

N = "neuron"


def write(folder: Path, text: str) -> str:
    path = folder / "overlay.py"
    path.write_text(text, encoding="utf-8")
    return str(path)


def load(*paths: str, **order: Any) -> Any:
    wanted = {"profile": "trn2-sdk2.33", **order}
    return NeuronAdapter().load(BuildOrder(device=N, binary=str(build.ensure().path), overlays=paths, **wanted))


def maximum_of(device: Any, dtype: torch.dtype = torch.float32) -> tuple[list[float], dict[str, int]]:
    """The result of `aten::maximum`, and what fell back on the way."""
    x = torch.tensor([1.0, 5.0, 3.0], dtype=dtype, device=N)
    recording = device.recording()
    recording.start()
    result = torch.maximum(x, x.flip(0))
    recording.stop()
    seen: dict[str, int] = {}
    for use in recording.ops():
        if use.op != "aten::flip":
            seen[use.op] = max(use.mechanism, seen.get(use.op, 0))
    return result.tolist(), seen


def test_an_overlay_makes_an_operator_native(in_child: Any, tmp_path: Path) -> None:
    path = write(tmp_path, MAXIMUM)
    assert in_child(lambda: maximum_of(load())) == ([3.0, 5.0, 3.0], {"aten::maximum": 1})
    values, seen = in_child(lambda: maximum_of(load(path)))
    assert values == [3.0, 5.0, 3.0]
    assert seen == {"aten::maximum": 0, "aten::gt.Tensor": 0, "aten::where.self": 0}


def test_an_overlay_counts_for_its_dtypes_only(in_child: Any, tmp_path: Path) -> None:
    path = write(tmp_path, MAXIMUM.replace('"aten::maximum"', '"aten::maximum", dtypes=("bfloat16",)'))
    assert in_child(lambda: maximum_of(load(path)))[1] == {"aten::maximum": 1}
    assert in_child(lambda: maximum_of(load(path), torch.bfloat16))[1]["aten::maximum"] == 0


def test_gradients_flow_through_an_overlay_in_eager_and_compiled_mode(in_child: Any, tmp_path: Path) -> None:
    path = write(tmp_path, MAXIMUM)

    def run() -> list[list[float]]:
        load(path)
        grads = []
        for function in (torch.maximum, torch.compile(torch.maximum, backend="neuron")):
            x = torch.tensor([1.0, 5.0], device=N, requires_grad=True)
            function(x, torch.full((2,), 3.0, device=N)).sum().backward()
            assert x.grad is not None
            grads.append(x.grad.tolist())
        return grads

    assert in_child(run) == [[0.0, 1.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    ("body", "op"),
    [
        ("return torch.maximum(a, b)", "aten::maximum"),
        ("return torch.sort(torch.stack([a, b]), dim=0).values[-1]", "aten::sort.stable"),
        ("return torch.softmax(torch.stack([a, b]), 0)[0] * 0 + torch.where(a > b, a, b)", "aten::_softmax"),
        ("return torch.where(a.cpu() > b.cpu(), a.cpu(), b.cpu()).to(a.device)", "aten::_copy_from"),
        ("return torch.where((a > b).cpu(), a.cpu(), b.cpu()).to(a.device)", "aten::where.self"),
        ("c = a.sum().item(); return torch.where(a > b, a, b)", "aten::_local_scalar_dense"),
    ],
    ids=["itself", "not-native", "not-primitive", "copies-out", "computes-on-the-host", "reads-a-value"],
)
def test_what_an_overlay_may_not_use_is_a_fallback(body: str, op: str, in_child: Any, tmp_path: Path) -> None:
    path = write(tmp_path, MAXIMUM.replace("return torch.where(a > b, a, b)", body))
    values, seen = in_child(lambda: maximum_of(load(path)))
    assert values == [3.0, 5.0, 3.0]
    assert seen[op] == 1


def test_a_forced_operator_beats_its_overlay(in_child: Any, tmp_path: Path) -> None:
    path = write(tmp_path, MAXIMUM)
    assert in_child(lambda: maximum_of(load(path, forced_cpu=("aten::maximum",))))[1] == {"aten::maximum": 3}


def test_an_overlay_that_returns_a_host_tensor_is_an_error(in_child: Any, tmp_path: Path) -> None:
    path = write(tmp_path, MAXIMUM.replace("return torch.where(a > b, a, b)", "return torch.ones(3)"))
    with pytest.raises(AssertionError, match="returned a tensor on cpu, expected neuron"):
        in_child(lambda: maximum_of(load(path)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def f(:", "is not Python"),
        ("x = 1", "has no @kernel function"),
        (HEADER + "1 / 0", "raises ZeroDivisionError"),
        (MAXIMUM.replace("aten::maximum", "aten::minimax"), "PyTorch has no operator 'aten::minimax'"),
        (MAXIMUM.replace("aten::maximum", "aten::linear").replace("(a, b)", "(a, b, c)"), "never reaches the device"),
        (MAXIMUM.replace("(a, b):", "(a):"), "has 2 arguments, its kernel takes 1"),
        (MAXIMUM.replace('"aten::maximum"', '"aten::maximum", dtypes=("float3",)'), "names the dtype 'float3'"),
    ],
    ids=["syntax", "empty", "raises", "unknown", "composed", "arity", "dtype"],
)
def test_a_malformed_overlay_is_one_clear_line(text: str, words: str, in_child: Any, tmp_path: Path) -> None:
    path = write(tmp_path, text)

    def attempt() -> str:
        with pytest.raises(BadInput) as caught:
            load(path)
        return str(caught.value)

    line = in_child(attempt)
    assert words in line
    assert "\n" not in line


def test_a_missing_overlay_is_bad_input(in_child: Any) -> None:
    def attempt() -> None:
        with pytest.raises(BadInput, match="cannot be read"):
            load("/nowhere/overlay.py")

    in_child(attempt)


def test_each_kernel_has_a_hash_that_changes_with_it_alone(tmp_path: Path) -> None:
    two = MAXIMUM + '\n\n@kernel("aten::minimum")\ndef minimum(a, b):\n    return torch.where(a < b, a, b)\n'
    before = declared.kernels(write(tmp_path, two))
    after = declared.kernels(write(tmp_path, two.replace("a < b", "a <= b") + "# a remark\n"))
    shared = declared.kernels(write(tmp_path, two.replace("import torch\n", "import torch\nLIMIT = 3\n")))
    assert set(before) == {"aten::maximum", "aten::minimum"}
    assert before["aten::maximum"] == after["aten::maximum"]
    assert before["aten::minimum"] != after["aten::minimum"]
    assert before["aten::maximum"] != shared["aten::maximum"]
    order = BuildOrder(device=N, profile="ideal", overlays=(str(tmp_path / "overlay.py"),))
    assert vector.build_vector(order).kernels == shared
