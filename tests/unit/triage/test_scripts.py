"""A reproduction's script is Python, short, safe to write anything into, and has what NeuronQA runs."""

from __future__ import annotations

import ast

import pytest

from neuronqa.domain.case import Variant
from neuronqa.errors import BadInput
from neuronqa.triage import scripts

VARIANTS = ("eager/fp32/train", "compile/bf16/train", "eager/fp32/infer")
DEVICES = ("neuron", "cpu:inductor", "cuda")
HOSTILE = 'run:error("""\\n import os; os.system("id") \\'


def texts(variant: str, device: str, outcome: str = "fallback:no-kernel(aten::sort int64)") -> list[str]:
    parsed = Variant.parse(variant)
    head = scripts.head(outcome, "something", parsed, device, "trn2-sdk2.33")
    tail = scripts.tail(parsed, device)
    return [
        scripts.operator(head, tail, "aten::sort.stable", writes=False),
        scripts.operator(head, tail, "aten::masked_scatter_", writes=True),
        scripts.model(head, tail, "transformers.models.llama.modeling_llama", "LlamaForCausalLM", own_loss=True),
        scripts.factory(head, scripts.tail(parsed, device, named=False), "make_it", {"depth": 2}, 7),
        scripts.workload(head, scripts.tail(parsed, device, named=False)),
    ]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_script_is_short_and_makes_what_is_judged(variant: str, device: str) -> None:
    for text in texts(variant, device):
        tree = ast.parse(text)
        assert "make" in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert len(text.splitlines()) <= 40
        assert ("torch.compile(" in text) == (variant.startswith("compile") or device.startswith("cpu:"))
        assert ("get_fallback_ops" in text) == (device == "neuron")


def test_only_the_last_resort_needs_neuronqa() -> None:
    *alone, last = texts("eager/fp32/train", "neuron")
    assert not [text for text in alone if "import neuronqa" in text or "from neuronqa" in text]
    assert "from neuronqa" in last


def test_what_failed_stays_a_docstring_whatever_it_says() -> None:
    for text in texts("eager/fp32/train", "neuron", HOSTILE):
        first = ast.parse(text).body[0]
        assert isinstance(first, ast.Expr)
        assert "os.system" in ast.literal_eval(first.value)
        assert text.count("os.system") == 1


@pytest.mark.parametrize("name", ["aten::x();__import__('os')", "aten::x y", "aten::"])
def test_what_is_no_name_is_not_written_into_code(name: str) -> None:
    with pytest.raises(BadInput, match="not a Python name"):
        scripts.operator("", "", name, writes=False)


def test_arguments_are_data() -> None:
    text = scripts.factory("", "", "make_it", {"x=1); print('no'); f(y": "\n"}, 0)
    (call,) = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and node.keywords]
    assert ast.literal_eval(call.keywords[0].value) == {"x=1); print('no'); f(y": "\n"}
