"""Deterministic weights that let every part of a model be seen.

A class's own initialisation is made for training wide, deep models: zero biases, unit norms, gates at zero, standard
deviations of 0.02. In a narrow twin most of it never reaches the output, and a device could drop a bias or a branch
unnoticed. So, after the model's own initialisation:

- a tensor of one single value (biases, norms, gates) is spread around it;
- a matrix whose entries are too small for its fan-in is scaled up until its products keep their scale.

Tables, frequencies and anything else that is neither stay as the model made them.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn

from neuronqa.domain.identity import content_hash

_AFFINE: Final = (".weight", ".bias")
"""Buffers of these names are the frozen half of a norm; at zero they would cut off a residual branch."""
SPREAD: Final = 0.1
"""Standard deviation around a constant."""


def generator(seed: int, name: str) -> torch.Generator:
    """A generator of its own for each name, so that no draw depends on the order of others."""
    return torch.Generator().manual_seed(int(content_hash([seed, name])[:15], 16))


@torch.no_grad()
def enliven(model: nn.Module, seed: int) -> None:
    """Spread constants and scale up small matrices, in place. Shared tensors are changed once."""
    frozen = ((n, b) for n, b in model.named_buffers() if n.endswith(_AFFINE))
    trained = ((n, p) for n, p in model.named_parameters() if p.requires_grad)
    for name, parameter in (*trained, *frozen):
        if not parameter.is_floating_point() or parameter.numel() == 0:
            continue
        low, high = parameter.aminmax()
        if low == high:
            _spread(parameter, float(low), generator(seed, name))
        elif parameter.dim() >= 2:
            _scale(parameter)


def _spread(parameter: Tensor, value: float, source: torch.Generator) -> None:
    if parameter.numel() > 1:
        parameter.add_(SPREAD * torch.randn(parameter.shape, generator=source))
    elif value == 0:
        parameter.fill_(SPREAD)


def _scale(parameter: Tensor) -> None:
    """Bring the standard deviation up to one over the square root of the fan-in."""
    fan_in = parameter.numel() // parameter.shape[0] if parameter.dim() != 3 else min(parameter.shape[1:])
    wanted = max(1, fan_in) ** -0.5
    found = float(parameter.std())
    if 0 < found < wanted:
        parameter.mul_(wanted / found)
