"""The suites: frozen lists with a policy each, complete for what they list."""

from collections import Counter

import pytest

from neuronqa import catalog
from neuronqa.domain.case import Mode, Phase
from neuronqa.domain.workload import AttentionSpec, Modification, OpSpec, Workload
from neuronqa.sweep.policies import load_policy

SUITES = ("aten", "flex-attention", "generate", "matmul", "moe-dispatch", "recipes", "compile-tax")


def workloads(name: str) -> list[Workload]:
    return [Workload.from_json(entry.workload) for entry in catalog.open(name).entries() if entry.workload]


@pytest.mark.parametrize(
    "name", ["aten", "flex-attention", "generate", "matmul", "moe-dispatch", "recipes", "compile-tax"]
)
def test_every_suite_has_a_policy_of_its_own_and_no_workload_twice(name: str) -> None:
    policy = load_policy(catalog.own_policy(name))
    assert policy.variants
    hashes = [one.hash for one in workloads(name)]
    assert len(set(hashes)) == len(hashes) or name == "matmul"  # products of one class are one workload


def test_a_catalog_without_a_policy_leaves_the_choice() -> None:
    assert catalog.own_policy("mini") == ""


def test_flex_attention_has_ninety_six_cases_and_is_compiled_forward_and_backward() -> None:
    specs = [one.spec for one in workloads("flex-attention")]
    assert len(specs) == 96
    assert all(isinstance(spec, AttentionSpec) and spec.compile_budget_s > 0 for spec in specs)
    modifications = Counter(spec.modification for spec in specs if isinstance(spec, AttentionSpec))
    assert modifications == dict.fromkeys(Modification, 12)
    assert {(v.mode, v.phase) for v in load_policy("attention").variants} == {
        (Mode.EAGER, Phase.GRADIENT),
        (Mode.COMPILE, Phase.GRADIENT),
    }


def test_aten_lists_every_operator_that_this_pytorch_tests() -> None:
    from torch.testing._internal.common_methods_invocations import op_db

    names = {f"{one.name}.{one.variant_test_name}" if one.variant_test_name else one.name for one in op_db}
    assert {one.spec.op for one in workloads("aten") if isinstance(one.spec, OpSpec)} == names


def test_generate_lists_every_causal_language_model_of_this_transformers() -> None:
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    listed = [entry.model_type for entry in catalog.open("generate").entries() if entry.config]
    assert sorted(listed) == sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    assert {variant.phase for variant in load_policy("decoding").variants} == {Phase.GENERATE}
