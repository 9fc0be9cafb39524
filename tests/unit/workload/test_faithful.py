"""Shrinking is faithful: a small model does what the full one does, operator by operator."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only
from transformers import PreTrainedModel, masking_utils

from neuronqa.domain.workload import HfSpec
from neuronqa.workload import architectures, model
from neuronqa.workload.complete import complete, instantiate
from neuronqa.workload.inputs import synthesise
from neuronqa.workload.inputs.adaptation import Adaptation
from neuronqa.workload.inputs.labels import targets
from neuronqa.workload.inputs.scene import Scene
from neuronqa.workload.levels import Level
from neuronqa.workload.loss import Projection, has_own, own
from neuronqa.workload.planner import plan_config
from neuronqa.workload.quiet import settle, silence
from neuronqa.workload.tree import nodes

FAMILIES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "bart": "BartForConditionalGeneration",
    "bert": "BertForMaskedLM",
    "t5": "T5ForConditionalGeneration",
    "vit": "ViTForImageClassification",
    "convnext": "ConvNextForImageClassification",
    "clip": "CLIPModel",
    "wav2vec2": "Wav2Vec2ForSequenceClassification",
}
BOOKKEEPING = (
    "aten.view",
    "aten.expand",
    "aten._unsafe_view",
    "aten.alias",
    "aten.detach",
    "aten.clone",
    "aten.as_strided",
)
"""How a layout is told, which a size of one alone can change; no kernel's work."""

Work = tuple[str, frozenset[str]]


class _Worked(TorchDispatchMode):
    """Every operator that runs, with the kinds of numbers it reads."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: set[Work] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        result = func(*args, **(kwargs or {}))
        name = str(func)
        if not name.startswith(BOOKKEEPING):
            read = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
            self.seen.add((name, frozenset("float" if t.is_floating_point() else "whole" for t in read)))
        return result


def _work(fields: dict[str, Any], spec: HfSpec) -> set[Work]:
    """What one training step of a config does, on the meta device: nothing of its size is allocated."""
    found = architectures.find(spec.model_type, spec.class_name)
    assert found is not None
    with torch.device("meta"):
        made = model._class(spec)(instantiate(spec.model_type, fields))
    assert isinstance(made, PreTrainedModel)
    model.without_dropout(made.train())
    scene = Scene(made, made.config, found.task, spec.class_name, 16, 0)
    given = synthesise(scene, Adaptation())
    given |= targets(scene, given)
    inputs = tree_map_only(torch.Tensor, lambda tensor: tensor.to("meta"), given)
    worked = _Worked()
    with worked:
        outputs = made(**inputs)
        loss = own(outputs) if has_own(outputs) else Projection(0)(outputs)
        loss.backward()
    return worked.seen


def _layer_kinds(fields: dict[str, Any]) -> dict[str, set[str]]:
    return {node.path: set(node.fields.get("layer_types") or ()) for node in nodes(fields)}


@pytest.mark.parametrize(("model_type", "class_name"), FAMILIES.items(), ids=FAMILIES)
def test_a_small_model_does_what_the_full_one_does(
    model_type: str, class_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(masking_utils, "is_tracing", lambda *_: True)  # else it reads values, of which there are none
    text = json.dumps({"model_type": model_type, "architectures": [class_name]})
    planned = plan_config(text).workload
    assert planned is not None
    spec = planned.spec
    assert isinstance(spec, HfSpec)
    assert spec.level == Level.SMALL
    full = complete(instantiate(model_type, {}), spec.module)
    for node in nodes(full):
        silence(node)
    settle(full)
    assert _layer_kinds(dict(spec.config)) == _layer_kinds(full)
    assert _work(dict(spec.config), spec) == _work(full, spec)
