"""Which configs share a kernel key, a graph key and a workload."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import pytest

from neuronqa.workload.planner import ConfigPlan, plan_config
from tests.unit.workload.families import FAMILIES

KERNEL_GROUPS = [
    {"llama-3.1-8b", "llama-3.1-8b-finetune"},
    {"llama-2-7b", "llama-2-13b"},
    {"gemma-2-2b", "gemma-2-9b"},
    {"gpt-oss-20b", "gpt-oss-120b"},
    {"bert-base", "bert-large"},
    {"bert-mnli", "bert-sentiment"},
    {"bert-ner-9", "bert-ner-17"},
    {"t5-small", "t5-base", "t5-large"},
    {"whisper-tiny", "whisper-small", "whisper-large-v2"},
    {"whisper-large-v3", "whisper-large-v3-turbo"},
    {"vit-base-16-224", "vit-base-16-384", "vit-large-16"},
]
"""Same graph, same kernels. Whoever stands in no group stands alone."""

GRAPH_GROUPS = [
    {"llama-3.1-8b", "llama-3.1-8b-finetune", "llama-3.1-70b"},
    {"llama-2-7b", "llama-2-13b"},
    {"qwen2.5-0.5b", "qwen2.5-1.5b"},
    {"qwen2.5-7b", "qwen2.5-32b", "qwen2.5-72b"},
    {"gemma-2-2b", "gemma-2-9b", "gemma-2-27b"},
    {"mixtral-8x7b", "mixtral-8x22b"},
    {"gpt-oss-20b", "gpt-oss-120b"},
    {"bert-base", "bert-large"},
    {"bert-mnli", "bert-sentiment"},
    {"bert-ner-9", "bert-ner-17"},
    {"t5-small", "t5-base", "t5-large", "t5-3b"},
    {"flan-t5-small", "flan-t5-xxl"},
    {"whisper-tiny", "whisper-small", "whisper-large-v2", "whisper-large-v3", "whisper-large-v3-turbo"},
    {"vit-base-16-224", "vit-base-16-384", "vit-large-16", "vit-base-32"},
    {"clip-b-32", "clip-b-16", "clip-l-14"},
]
"""Same graph: grouping ratio, head dimension, top-k, patches, kernels and mel bins may differ."""


@pytest.fixture(scope="module")
def plans() -> dict[str, ConfigPlan]:
    return {name: plan_config(json.dumps(fields)) for name, fields in FAMILIES.items()}


def _groups(keys: dict[str, str]) -> set[frozenset[str]]:
    return {frozenset(name for name in keys if keys[name] == key) for key in keys.values()}


def _expected(groups: list[set[str]]) -> set[frozenset[str]]:
    alone = set(FAMILIES) - set().union(*groups)
    return {frozenset(group) for group in groups} | {frozenset({name}) for name in alone}


def test_kernel_keys_group_what_runs_the_same_kernels(plans: dict[str, ConfigPlan]) -> None:
    assert _groups({name: plan.kernel_key for name, plan in plans.items()}) == _expected(KERNEL_GROUPS)


def test_graph_keys_group_what_has_the_same_graph(plans: dict[str, ConfigPlan]) -> None:
    assert _groups({name: plan.graph_key for name, plan in plans.items()}) == _expected(GRAPH_GROUPS)


def test_one_kernel_key_never_has_two_graph_keys(plans: dict[str, ConfigPlan]) -> None:
    for a, b in combinations(plans.values(), 2):
        assert a.kernel_key != b.kernel_key or a.graph_key == b.graph_key


LLAMA: dict[str, Any] = FAMILIES["llama-3.1-8b"]

NEVER_MATTERS = {
    "names": {"_name_or_path": "a/b", "transformers_version": "4.40.0", "tokenizer_class": "X"},
    "notes of tools": {"unsloth_version": "2025.1", "quantized_by": "nobody"},
    "special tokens": {"eos_token_id": [128001, 128009], "bos_token_id": 1, "pad_token_id": 2},
    "vocabulary": {"vocab_size": 32000},
    "depth": {"num_hidden_layers": 16},
    "positions": {"max_position_embeddings": 4096},
    "dropout": {"attention_dropout": 0.1},
    "initialisation": {"initializer_range": 0.01},
    "norm epsilon": {"rms_norm_eps": 1e-6},
    "storage dtype": {"torch_dtype": "float16"},
    "cache": {"use_cache": False},
    "rope base": {"rope_theta": 1e4},
    "width within a tile class": {"intermediate_size": 11008},
    "generation settings": {"max_length": 20, "temperature": 0.6},
}

MATTERS = {
    "head dimension": {"head_dim": 64},
    "grouping of heads": {"num_key_value_heads": 16},
    "activation": {"hidden_act": "gelu"},
    "tying": {"tie_word_embeddings": True},
    "bias": {"attention_bias": True},
    "rope kind": {"rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    "class": {"architectures": ["LlamaForSequenceClassification"]},
    "width that no longer fills tiles": {"intermediate_size": 11000},
    "epsilon of zero": {"rms_norm_eps": 0.0},
}


@pytest.mark.parametrize("change", NEVER_MATTERS.values(), ids=NEVER_MATTERS)
def test_what_alters_no_kernel_alters_no_key(change: dict[str, Any]) -> None:
    assert plan_config(json.dumps(LLAMA | change)).kernel_key == plan_config(json.dumps(LLAMA)).kernel_key


@pytest.mark.parametrize("change", MATTERS.values(), ids=MATTERS)
def test_what_alters_graph_or_kernels_alters_the_kernel_key(change: dict[str, Any]) -> None:
    plan = plan_config(json.dumps(LLAMA | change))
    assert plan.status.value == "eligible"
    assert plan.kernel_key != plan_config(json.dumps(LLAMA)).kernel_key


def test_keys_do_not_depend_on_the_order_of_fields() -> None:
    backwards = json.dumps(dict(reversed(LLAMA.items())))
    assert plan_config(backwards).kernel_key == plan_config(json.dumps(LLAMA)).kernel_key


SMALL = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_attention_heads": 4}
LABELLED = {"model_type": "bert", "architectures": ["BertForSequenceClassification"]}


@pytest.mark.parametrize(
    ("healthy", "changes", "inherits"),
    [
        (SMALL, {"vocab_size": 99}, True),
        (SMALL, {"pad_token_id": -1}, True),
        (SMALL, {"max_position_embeddings": 77}, True),
        (SMALL, {"rope_theta": 5e5}, True),
        (SMALL, {"vocab_size": 0}, False),
        (SMALL, {"vocab_size": -1}, False),
        (SMALL, {"vocab_size": 1}, False),
        (SMALL, {"pad_token_id": 10**6}, False),
        (SMALL, {"max_position_embeddings": 0}, False),
        (SMALL, {"rope_theta": 0.0}, False),
        (SMALL, {"rope_theta": -1.0}, False),
        (LABELLED, {"id2label": {str(n): "x" for n in range(9)}}, True),
        (LABELLED, {"id2label": {}}, False),
    ],
)
def test_what_cannot_be_built_inherits_from_nothing_that_can(
    healthy: dict[str, Any], changes: dict[str, Any], inherits: bool
) -> None:
    sound, changed = (plan_config(json.dumps(fields)) for fields in (healthy, {**healthy, **changes}))
    assert sound.kernel_key
    assert (changed.kernel_key == sound.kernel_key) is inherits
