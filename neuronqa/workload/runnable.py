"""What a built workload offers to the roles that run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from neuronqa.domain.outcome import Kind

MakeOptimizer = Callable[[nn.Module], Optimizer]


@dataclass(frozen=True, kw_only=True)
class Runnable:
    """A module on the CPU in float32 and train mode with dropout 0, complete inputs, and a loss.

    `inputs` are the keyword arguments of `module.forward` (nested dicts, lists and tensors on the CPU). `loss` maps the
    outputs to a scalar that requires grad; where a model has none of its own it is a fixed random projection.
    """

    module: nn.Module
    inputs: dict[str, Any]
    loss: Callable[..., Tensor]
    loss_takes_inputs: bool = False
    """Is the loss a function of the outputs and the inputs (a dict, on the device)?"""
    optimizer: MakeOptimizer | None = None
    """Makes the optimizer for the module as it is then; None: AdamW."""
    partial: tuple[str, ...] = ()
    """What had to be left out (`image`, `labels`, `train-mode`, ...): a partial run is reported as one."""
    repairs: tuple[str, ...] = ()
    """What was learnt from the model's own errors, in order."""
    adaptation: Mapping[str, Any] = field(default_factory=dict)
    """The same as plain JSON: given to :func:`neuronqa.workload.build.build`, it spares the search."""
    whole: Callable[[], tuple[nn.Module, dict[str, Any]]] | None = None
    """Makes module and inputs at the size that is asked about, where less is executed; called below fake tensors."""
    compile_budget_s: float = 0.0
    """How long the whole size may take to compile; 0: as long as the device allows."""
    seconds: dict[str, float] = field(default_factory=dict)


class BuildFailure(Exception):
    """The workload could not be made. `kind` is one of the `build:` or `inputs:` kinds; data, not a fault of ours."""

    def __init__(self, kind: Kind, detail: str, message: str = "") -> None:
        super().__init__(message or detail)
        self.kind = kind
        self.detail = detail
