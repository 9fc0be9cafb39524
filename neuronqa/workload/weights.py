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

_LIVELY: Final = (".weight", ".bias", ".embed", ".embed_sum")
"""Buffers of these names are the frozen half of a norm, or a codebook; at zero they would cut off what is behind."""
SOUND_GAIN: Final = 0.5
"""For convolutions over time, of which many are added up without a norm between."""
_NORM: Final = (nn.modules.batchnorm._BatchNorm, nn.GroupNorm, nn.LayerNorm)
"""Some classes start their weights near zero, so that a block begins as nothing: little reaches what is before."""
LEAST_GAIN: Final = 0.5
_CONVOLUTION: Final = nn.modules.conv._ConvNd
_PARAMETRIZED: Final = ".parametrizations."
"""Where torch keeps the two halves of a weight under weight norm."""
SPREAD: Final = 0.1
"""Standard deviation around a constant."""


def generator(seed: int, name: str) -> torch.Generator:
    """A generator of its own for each name, so that no draw depends on the order of others."""
    return torch.Generator().manual_seed(int(content_hash([seed, name])[:15], 16))


@torch.no_grad()
def enliven(model: nn.Module, seed: int) -> None:
    """Spread constants and scale up small matrices, in place. Shared tensors are changed once."""
    frozen = ((n, b) for n, b in model.named_buffers() if n.endswith(_LIVELY))
    trained = ((n, p) for n, p in model.named_parameters() if p.requires_grad)
    norms = {name for name, module in model.named_modules() if isinstance(module, _NORM)}
    convolutions = {name for name, module in model.named_modules() if isinstance(module, _CONVOLUTION)}
    for name, parameter in (*trained, *frozen):
        if not parameter.is_floating_point() or parameter.numel() == 0:
            continue
        if name.removesuffix(".weight") in norms and abs(float(parameter.mean())) < LEAST_GAIN:
            parameter.add_(1.0)
        low, high = parameter.aminmax()
        if low == high:
            _spread(parameter, float(low), generator(seed, name))
        elif parameter.dim() >= 2 and parameter.numel() > max(parameter.shape):
            home = name.partition(_PARAMETRIZED)[0].removesuffix(".weight")
            _scale(parameter, _deviation(parameter, convolution=home in convolutions))


def _spread(parameter: Tensor, value: float, source: torch.Generator) -> None:
    if parameter.numel() > 1:
        parameter.add_(SPREAD * torch.randn(parameter.shape, generator=source))
    elif value == 0:
        parameter.fill_(SPREAD)


def _deviation(parameter: Tensor, *, convolution: bool) -> float:
    """One over the square root of the fan-in.

    Three axes are those of a convolution over time, or of the matrices of several experts.
    """
    if parameter.dim() != 3:
        return float(max(1, parameter.numel() // parameter.shape[0]) ** -0.5)
    if convolution:
        return float(SOUND_GAIN * max(1, parameter.numel() // parameter.shape[0]) ** -0.5)
    return float(max(1, min(parameter.shape[1:])) ** -0.5)


def _scale(parameter: Tensor, wanted: float) -> None:
    """Bring the standard deviation up to `wanted`."""
    found = float(parameter.std())
    if 0 < found < wanted:
        parameter.mul_(wanted / found)
