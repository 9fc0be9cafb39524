"""A scalar to go back from: the model's own loss, or a fixed random projection of its outputs.

The mean square of outputs would be the obvious stand-in, but behind a LayerNorm it is nearly constant: in T5Model it
leaves 45 of 47 parameter tensors with a gradient below 1e-6, a random projection none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from neuronqa.workload.weights import generator


@dataclass(frozen=True)
class Projection:
    """The sum of chosen outputs, weighted by fixed noise and scaled by their size.

    Weights are drawn on the CPU in float32, one draw per output's place and shape, and follow the output's device and
    dtype, so that the same numbers weigh float64 and bfloat16.
    """

    seed: int
    places: frozenset[str] | None = None
    """Paths of the outputs that count; None: all that depend on a parameter."""
    weights: dict[tuple[str, torch.Size], Tensor] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, outputs: Any, seed: int) -> Projection:
        """A projection of the outputs that depend on parameters. Raises ValueError where none does."""
        places = frozenset(place for place, tensor in tensors(outputs) if _differentiable(tensor))
        if not places:
            raise ValueError("no output depends on a parameter")
        return cls(seed, places)

    def __call__(self, outputs: Any) -> Tensor:
        parts = [self._part(place, tensor) for place, tensor in tensors(outputs) if self._counts(place, tensor)]
        if not parts:
            raise ValueError("no output depends on a parameter")
        return torch.stack(parts).sum()

    def _counts(self, place: str, tensor: Tensor) -> bool:
        return _differentiable(tensor) if self.places is None else place in self.places

    def _part(self, place: str, tensor: Tensor) -> Tensor:
        key = (place, tensor.shape)
        if key not in self.weights:
            self.weights[key] = torch.randn(tensor.shape, generator=generator(self.seed, f"loss/{place}"))
        weight = self.weights[key].to(device=tensor.device, dtype=tensor.dtype)
        product = torch.where(torch.isinf(tensor), torch.zeros_like(tensor), tensor) * weight
        return product.sum() / float(tensor.numel() ** 0.5)


def own(outputs: Any) -> Tensor:
    """The loss a model computed itself, as a scalar. Raises ValueError where there is none."""
    found = _own(outputs)
    if found is None:
        raise ValueError("the model returned no loss")
    return found.mean() if found.dim() else found


def has_own(outputs: Any) -> bool:
    """Did the model return a loss that can be differentiated?"""
    found = _own(outputs)
    return found is not None and found.requires_grad


def tensors(outputs: Any, place: str = "") -> Iterator[tuple[str, Tensor]]:
    """Every tensor of nested outputs with the path to it; caches are left out."""
    if isinstance(outputs, Tensor):
        yield place, outputs
    elif isinstance(outputs, Cache):
        return
    elif isinstance(outputs, Mapping):
        for name, value in outputs.items():
            yield from tensors(value, f"{place}/{name}" if place else str(name))
    elif isinstance(outputs, list | tuple):
        for index, value in enumerate(outputs):
            yield from tensors(value, f"{place}/{index}" if place else str(index))


def _own(outputs: Any) -> Tensor | None:
    found = outputs.get("loss") if isinstance(outputs, Mapping) else getattr(outputs, "loss", None)
    return found if isinstance(found, Tensor) and found.is_floating_point() else None


def _differentiable(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tensor.requires_grad and tensor.numel() > 0
