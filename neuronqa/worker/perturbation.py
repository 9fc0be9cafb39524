"""Runs in which every layer's result is moved as much as a rounding moves it: what rounding may do to a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from neuronqa.worker.trees import replace_tensors

ONE_IN: Final = 12
"""One element in twelve moved by one unit in the last place has the variance of a rounding: a twelfth of a unit
squared."""


class Perturbation:
    """Moves floats up or down by one unit in the last place, one in twelve, drawn from `seed`.

    Results are moved, not weights: rounding errors of one layer's elements are independent, so they average out in what
    sums over many of them, while a moved weight shifts everything it touches the same way (in bfloat16 convolutions
    that is five times what rounding does to a gradient).
    """

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    @contextmanager
    def of_results(self, module: nn.Module) -> Iterator[None]:
        """Within, move what every module without children returns."""
        handles = [
            part.register_forward_hook(self._hook) for part in module.modules() if next(part.children(), None) is None
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def of_inputs(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Move inputs, but not whole numbers (a mask, a coordinate): they stand for a choice, not a measurement."""

        def change(tensor: Tensor) -> Tensor:
            return torch.where(tensor == tensor.round(), tensor, self._move(tensor)) if _floating(tensor) else tensor

        return dict(replace_tensors(inputs, change))

    def _hook(self, _module: nn.Module, _args: Any, output: Any) -> Any:
        return tree_map(lambda value: self._move(value) if _floating(value) else value, output)

    def _move(self, tensor: Tensor) -> Tensor:
        with torch.no_grad():
            draw = torch.randint(0, 2 * ONE_IN, tensor.shape, generator=self._generator)
            sign = (draw == 0).float() - (draw == 1).float()
            # Three quarters of eps is between 0.75 and 1.5 units, which rounds to one.
            step = tensor.float() * (0.75 * torch.finfo(tensor.dtype).eps) * sign
        return tensor + step.to(tensor.dtype)


def _floating(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()
