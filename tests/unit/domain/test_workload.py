"""Workloads, builds and observations: named by content, and read back from strict JSON."""

import json
import math
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuronqa.domain.build import BuildOrder, BuildVector
from neuronqa.domain.identity import canonical_json
from neuronqa.domain.workload import (
    AttentionSpec,
    HfSpec,
    Modification,
    ModuleSpec,
    OpSpec,
    ScriptSpec,
    Spec,
    Workload,
    WorkloadKind,
)

LLAMA = HfSpec(
    model_type="llama",
    class_name="LlamaForCausalLM",
    module="transformers.models.llama.modeling_llama",
    config={"hidden_size": 64, "rope_theta": 10000.0, "eos": None, "mask": -math.inf, "layers": ["full", "full"]},
    level=0,
    seed=0,
    builder="1",
)
MODULE = ModuleSpec(source="mini/crash.py", source_sha256="ab" * 32, factory="segfault", arguments={"at": 3})
OP = OpSpec(op="std.unbiased")
ATTENTION = AttentionSpec(
    modification=Modification.ALIBI,
    batch=4,
    sequence=8192,
    heads=16,
    kv_heads=4,
    head_dim=128,
    executed_batch=1,
    executed_sequence=256,
    compile_budget_s=600.0,
)
SCRIPT = ScriptSpec(source="recipes/plain.py", source_sha256="ef" * 32, function="train", requires=("torchtitan",))

CONFIGS = st.dictionaries(
    st.text(st.characters(), max_size=8),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=6,
)


def test_workload_hashes_never_change() -> None:
    assert Workload(LLAMA).hash == "2cf48700d3386979eb39c9365c0d6292"
    assert Workload(MODULE).hash == "2b984710e94dd1f531448d038cac30e6"


@pytest.mark.parametrize("spec", [LLAMA, MODULE, OP, ATTENTION, SCRIPT])
def test_a_workload_reads_back_from_its_json(spec: Spec) -> None:
    workload = Workload(spec)
    again = Workload.from_json(json.loads(canonical_json(workload.to_json())))
    assert again == workload
    assert again.hash == workload.hash


@given(CONFIGS)
def test_any_config_a_stranger_wrote_reads_back_under_its_name(config: dict[str, Any]) -> None:
    workload = Workload(replace(LLAMA, config=config))
    again = Workload.from_json(json.loads(canonical_json(workload.to_json())))
    assert again.hash == workload.hash


def test_every_field_of_a_spec_is_in_its_name() -> None:
    changed: list[Spec] = [
        replace(LLAMA, model_type="mistral"),
        replace(LLAMA, class_name="LlamaModel"),
        replace(LLAMA, module="elsewhere"),
        replace(LLAMA, config={**LLAMA.config, "hidden_size": 128}),
        replace(LLAMA, level=1),
        replace(LLAMA, seed=1),
        replace(LLAMA, builder="2"),
        replace(LLAMA, recipe="vision-1"),
        replace(MODULE, source="elsewhere.py"),
        replace(MODULE, source_sha256="cd" * 32),
        replace(MODULE, factory="abort"),
        replace(MODULE, arguments={}),
        replace(MODULE, seed=1),
        replace(MODULE, deadline_s=3.0),
        replace(MODULE, memory_mb=512),
        replace(OP, op="std"),
        replace(OP, dtype="int64"),
        replace(OP, samples=1),
        replace(ATTENTION, modification=Modification.CAUSAL),
        replace(ATTENTION, batch=1),
        replace(ATTENTION, compile_budget_s=60.0),
        replace(SCRIPT, function="other"),
        replace(SCRIPT, requires=()),
    ]
    kept: list[Spec] = [LLAMA, MODULE, OP, ATTENTION, SCRIPT]
    assert len({Workload(spec).hash for spec in [*kept, *changed]}) == len(changed) + len(kept)


def test_a_workloads_kind_and_family_come_from_its_spec() -> None:
    assert (Workload(LLAMA).kind, LLAMA.family) == (WorkloadKind.HF, "llama")
    assert (Workload(MODULE).kind, MODULE.family) == (WorkloadKind.MODULE, "segfault")
    assert (Workload(OP).kind, OP.family) == (WorkloadKind.OP, "op")
    assert (Workload(ATTENTION).kind, ATTENTION.family) == (WorkloadKind.ATTENTION, "attention")
    assert (Workload(SCRIPT).kind, SCRIPT.family) == (WorkloadKind.SCRIPT, "train")


@pytest.mark.parametrize(
    "value",
    [
        {"kind": "hf", "spec": {}},
        {"kind": "nonsense", "spec": {}},
        {"kind": "module", "spec": {**asdict(MODULE), "extra": 1}},
        {"kind": "hf", "spec": asdict(MODULE)},
        {"kind": "op", "spec": {"op": "add", "more": 1}},
        {"kind": "attention", "spec": {**asdict(ATTENTION), "modification": "nonsense"}},
        {"kind": "script", "spec": {"source": "x"}},
    ],
)
def test_what_is_no_workload_is_refused(value: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        Workload.from_json(value)


def test_an_order_reads_back_and_a_fault_looks_like_any_other_field() -> None:
    plain = BuildOrder(device="neuron", profile="ideal", binary="/x.so", overlays=("a.py",), forced_cpu=("aten::add",))
    planted = replace(plain, fault={"kind": "wrong", "op": "aten::mm", "factor": 0.5})
    for order in (plain, planted):
        assert BuildOrder.from_json(json.loads(canonical_json(order.to_json()))) == order
    assert plain.to_json().keys() == planted.to_json().keys()


def test_every_part_of_a_build_is_in_its_hash() -> None:
    vector = BuildVector(adapter="neuron", profile="ideal", profile_sha256="a", shim="b", passes="c")
    others = [
        replace(vector, adapter="cpu"),
        replace(vector, profile="trn2"),
        replace(vector, profile_sha256="z"),
        replace(vector, shim="z"),
        replace(vector, passes="z"),
        replace(vector, kernels={"aten::add.Tensor": "z"}),
        replace(vector, versions={"torch": "2.13.0"}),
    ]
    assert vector.hash == "a01db33484bec74a0ea662c612ed902d"
    assert len({one.hash for one in (vector, *others)}) == 8
