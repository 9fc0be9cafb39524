"""Would a model of this size compile? It is captured with fake tensors: nothing is allocated, nothing runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch._dynamo  # before our metrics: a loaded device registers its backend when this is imported
from torch import nn
from torch._dynamo.exc import BackendCompilerFailed
from torch._subclasses.fake_tensor import FakeTensorMode

from neuronqa.device.neuron.compiler import metrics
from neuronqa.device.neuron.compiler.backend import NeuronBackend
from neuronqa.device.neuron.compiler.errors import NeuronCompileTimeout
from neuronqa.device.neuron.profile import Profile

Whole = Callable[[], tuple[nn.Module, dict[str, Any]]]


def examine(
    whole: Whole,
    dtype: torch.dtype,
    loss: Callable[[Any], torch.Tensor],
    device: torch.device,
    profile: Profile,
    budget_s: float = 0.0,
) -> float:
    """Compile forward and backward of what `whole` makes where `dtype` and `device` are the defaults.

    Returns the modelled seconds of both.

    Raises NeuronCompileError for what the compiler refuses, NeuronCompileTimeout for what takes longer than `budget_s`
    (0: as long as the profile allows). What was counted of compilation is forgotten afterwards.
    """
    usual = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with FakeTensorMode(), device:
            module, inputs = whole()
            results = torch.compile(module, backend=NeuronBackend(profile))(**inputs)
            loss(results).backward()
        seconds = sum(graph.modelled_compile_s for graph in metrics.LEDGER.graphs)
    except BackendCompilerFailed as failed:
        raise failed.inner_exception from None
    finally:
        torch.set_default_dtype(usual)
        torch._dynamo.reset()
        metrics.reset()
    if budget_s and seconds > budget_s:
        raise NeuronCompileTimeout(
            f"neuronx-cc compilation timed out after {budget_s:.0f} s (it would take {seconds:.0f} s, modelled)",
            "compilation takes too long",
        )
    return seconds
