"""FlexAttention's cases: the plain reference is attention, each modification changes it, the whole size is asked."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from neuronqa.domain.workload import AttentionSpec, Modification, Workload
from neuronqa.workload.attention import DOCUMENTS, Attention, dense, documents
from neuronqa.workload.build import build

SPEC = AttentionSpec(
    modification=Modification.CAUSAL,
    batch=2,
    sequence=512,
    heads=4,
    kv_heads=4,
    head_dim=8,
    executed_batch=1,
    executed_sequence=32,
    compile_budget_s=600.0,
)


def output(spec: AttentionSpec) -> torch.Tensor:
    made = build(Workload(spec))
    found: torch.Tensor = made.module(**made.inputs)["output"]
    return found


@pytest.mark.parametrize("kv_heads", [4, 2])
def test_a_causal_reference_is_what_pytorch_computes(kv_heads: int) -> None:
    module = build(Workload(replace(SPEC, kv_heads=kv_heads))).module
    assert isinstance(module, Attention)
    query, key, value = module.query, module.key, module.value
    theirs = functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=kv_heads != 4)
    ours = dense(query, key, value, None, lambda _b, _h, q, k: q >= k)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_no_two_modifications_compute_the_same() -> None:
    outputs = [output(replace(SPEC, modification=one)) for one in Modification if one is not Modification.GQA]
    for number, one in enumerate(outputs):
        assert all(not torch.allclose(one, other, atol=1e-4) for other in outputs[:number])


def test_every_parameter_of_every_modification_has_a_gradient() -> None:
    for one in Modification:
        made = build(Workload(replace(SPEC, modification=one)))
        made.loss(made.module(**made.inputs)).backward()
        assert all(p.grad is not None and bool(p.grad.any()) for p in made.module.parameters()), one


def test_the_whole_size_is_the_one_asked_about_and_the_executed_one_is_small() -> None:
    made = build(Workload(SPEC))
    assert made.whole is not None
    with torch.device("meta"):
        module, inputs = made.whole()
    assert isinstance(module, Attention)
    assert isinstance(made.module, Attention)
    assert module.query.shape == (2, 4, 512, 8)
    assert made.module.query.shape == (1, 4, 32, 8)
    assert inputs["document"].shape == (512,)


def test_documents_are_of_unequal_length_and_cover_the_sequence() -> None:
    counts = torch.bincount(documents(replace(SPEC, sequence=100)))
    assert counts.tolist() == [10, 30, 20, 40]
    assert len(counts) == DOCUMENTS
