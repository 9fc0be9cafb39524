"""A size is asked about without being made: captured with fake tensors, costed, and held to a budget."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from neuronqa.device.neuron import profile
from neuronqa.device.neuron.compiler import metrics
from neuronqa.device.neuron.compiler.errors import NeuronCompileError, NeuronCompileTimeout
from neuronqa.device.neuron.compiler.examine import examine

CPU = torch.device("cpu")
PROFILE = profile.load("trn2-sdk2.33")


def whole(width: int) -> tuple[nn.Module, dict[str, Any]]:
    return nn.Linear(width, width, bias=False), {"input": torch.empty(128, width)}


def loss(output: Tensor) -> Tensor:
    return output.sum()


def seconds(width: int, budget_s: float = 0.0) -> float:
    return examine(lambda: whole(width), torch.bfloat16, loss, CPU, PROFILE, budget_s)


def test_a_larger_size_takes_longer_and_nothing_of_it_is_allocated_or_counted() -> None:
    assert seconds(128) < seconds(16_384) < seconds(65_536)
    assert metrics.LEDGER.graphs == []
    assert torch.get_default_dtype() is torch.float32


def test_a_size_over_its_budget_is_a_compile_timeout() -> None:
    needed = seconds(16_384)
    assert seconds(16_384, needed + 1) == needed
    with pytest.raises(NeuronCompileTimeout, match="modelled"):
        seconds(16_384, needed - 1)


def test_a_size_the_compiler_refuses_is_refused_whatever_the_budget() -> None:
    with pytest.raises(NeuronCompileError, match="NCC_"):
        seconds(2_000_000)
