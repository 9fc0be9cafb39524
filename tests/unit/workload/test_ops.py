"""Operators from OpInfo: what is differentiated is a parameter, what is not is an input, and nothing carries over."""

import pytest
import torch

from neuronqa.domain.outcome import Kind
from neuronqa.domain.workload import OpSpec, Workload
from neuronqa.workload.build import build
from neuronqa.workload.runnable import BuildFailure


def test_an_operators_samples_become_parameters_and_results() -> None:
    made = build(Workload(OpSpec(op="addmm", samples=2)))
    results = made.module(**made.inputs)
    assert set(results) == {"0", "1"}
    made.loss(results).backward()
    gradients = [parameter.grad for parameter in made.module.parameters()]
    assert len(gradients) == 6
    assert all(gradient is not None for gradient in gradients)


def test_what_cannot_be_differentiated_has_a_loss_without_gradient() -> None:
    made = build(Workload(OpSpec(op="bitwise_and", dtype="int64", samples=1)))
    results = made.module(**made.inputs)
    assert not list(made.module.parameters())
    assert not made.loss(results).requires_grad


def test_an_operator_that_writes_to_its_arguments_gives_the_same_twice() -> None:
    made = build(Workload(OpSpec(op="nn.functional.batch_norm", samples=3)))
    first, second = made.module(**made.inputs), made.module(**made.inputs)
    for name, one in first.items():
        assert torch.equal(one, second[name])


def test_samples_whose_result_is_not_finite_are_left_out() -> None:
    made = build(Workload(OpSpec(op="full", samples=8)))
    results = made.module(**made.inputs)
    assert results
    assert all(bool(torch.isfinite(one).all()) for one in results.values())


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        (OpSpec(op="no_such_operator"), Kind.BUILD_ERROR),
        (OpSpec(op="torch.ops.aten._flash_attention_forward"), Kind.INPUTS_ERROR),
    ],
)
def test_an_operator_without_a_sample_is_data(spec: OpSpec, kind: Kind) -> None:
    with pytest.raises(BuildFailure) as caught:
        build(Workload(spec))
    assert caught.value.kind is kind
