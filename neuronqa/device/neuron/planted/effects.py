"""The common form of a planted operator fault, and the register of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from neuronqa.device.neuron.faults import Fault


class Call(Protocol):
    """One use of an operator: its name and its arguments on the host, in schema order."""

    @property
    def name(self) -> str: ...

    @property
    def args(self) -> tuple[Any, ...]: ...

    @property
    def in_backward(self) -> bool: ...


Run = Callable[[], Any]
"""Runs the kernel that was there before, and returns its results."""

Effect = Callable[[Call, Run, Fault], Any]
Change = Callable[[Tensor, Fault], None]

EFFECTS: dict[str, Callable[[], Effect]] = {}
"""What makes the effect of a fault, anew each time it is planted: some remember the calls they saw."""


def effect(name: str) -> Callable[[Effect], Effect]:
    """Register a function as what the fault `name` does."""

    def register(function: Effect) -> Effect:
        EFFECTS[name] = lambda: function
        return function

    return register


def change(name: str) -> Callable[[Change], Change]:
    """Register a function that changes the first floating-point result in place."""

    def register(function: Change) -> Change:
        def apply(_call: Call, run: Run, fault: Fault) -> Any:
            result = run()
            for tensor in floats(result)[:1]:
                function(tensor, fault)
            return result

        EFFECTS[name] = lambda: apply
        return function

    return register


def floats(value: Any) -> list[Tensor]:
    """The floating-point tensors with elements in `value`, in order."""
    if isinstance(value, Tensor):
        return [value] if value.is_floating_point() and value.numel() else []
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in floats(item)]
    return []


def scale_of(tensor: Tensor) -> Tensor:
    """Root mean square."""
    return tensor.float().square().mean().sqrt().to(tensor.dtype)


def flat(tensor: Tensor) -> Tensor:
    """A view with at least one dimension."""
    return tensor if tensor.dim() else tensor.view(1)


def own_noise(tensor: Tensor, generator: torch.Generator) -> Tensor:
    """Uniform in [-1, 1], from a generator that no model shares."""
    return torch.rand(tensor.shape, generator=generator, dtype=torch.float32).mul_(2).sub_(1).to(tensor.dtype)
