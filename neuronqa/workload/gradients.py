"""Does every part of a model learn? Gradients by tower, and the parameters that cannot have any, named."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from neuronqa.workload.excuses import excuse
from neuronqa.workload.weights import generator

NOISE: Final = 1e-6
"""A gradient whose root mean square is below this part of its tower's largest is rounding noise."""
SHARE: Final = 0.95
PUSH: Final = 0.1
"""Standard deviation of the shift that shows whether a loss depends on a vector at all."""
UNMOVED: Final = 1e-5
"""A loss that a shift changes by less, relative to itself, does not depend on what was shifted."""


@dataclass(frozen=True)
class Tower:
    """The parameters that belong to one innermost pretrained model."""

    name: str
    able: int
    """Parameters that can have a gradient."""
    dead: tuple[str, ...]
    """Those of them that had none."""
    excused: tuple[tuple[str, str], ...]
    """Parameters that cannot have one, with the reason."""

    @property
    def alive(self) -> bool:
        return len(self.dead) <= (1 - SHARE) * self.able


def towers(module: nn.Module, loss: Callable[[], Tensor]) -> list[Tower]:
    """Judge the gradients that stand in `module` after a backward pass; `loss` computes the loss anew."""
    parameters = {name: p for name, p in module.named_parameters() if p.requires_grad and p.numel()}
    unread, family = _unread(module), str(getattr(getattr(module, "config", None), "model_type", ""))
    found = []
    for name, members in _members(module, parameters).items():
        sizes = {member: _size(parameters[member].grad) for member in members}
        floor = NOISE * max(sizes.values(), default=0.0)
        silent = [member for member, size in sizes.items() if not size > floor]
        excused = {member: reason for member in silent if (reason := excuse(family, member) or unread(member))}
        rest = [member for member in silent if member not in excused]
        if len(rest) > (1 - SHARE) * (len(members) - len(excused)):
            excused |= _invariant(parameters, rest, loss)
        dead = tuple(member for member in rest if member not in excused)
        found.append(Tower(name, len(members) - len(excused), dead, tuple(excused.items())))
    return found


def _members(module: nn.Module, parameters: dict[str, nn.Parameter]) -> dict[str, list[str]]:
    homes = [name for name, part in module.named_modules() if isinstance(part, PreTrainedModel)]
    found: dict[str, list[str]] = {}
    for name in parameters:
        home = max((h for h in homes if not h or name.startswith(f"{h}.")), key=len, default="")
        found.setdefault(home, []).append(name)
    return found


def _size(gradient: Tensor | None) -> float:
    if gradient is None or gradient.numel() == 0:
        return 0.0
    return float(gradient.float().pow(2).mean().sqrt())


def _unread(module: nn.Module) -> Callable[[str], str]:
    """Tells of layers of a vision tower that come after the last one whose output is read."""
    config = getattr(module, "config", None)
    vision = getattr(config, "vision_config", None)
    depth = getattr(vision, "num_hidden_layers", None)
    read = getattr(config, "vision_feature_layer", None) or getattr(config, "vision_feature_layers", None)
    layers = [read] if isinstance(read, int) else read
    if not isinstance(depth, int) or not isinstance(layers, list) or not layers:
        return lambda _: ""
    last = max(layer if layer >= 0 else depth + 1 + layer for layer in layers)

    def reason(name: str) -> str:
        place = re.search(r"vision\w*\.(?:.*\.)?layers\.(\d+)\.", name)
        return "comes after the last layer that is read" if place and int(place.group(1)) >= last else ""

    return reason


@torch.no_grad()
def _invariant(parameters: dict[str, nn.Parameter], names: list[str], loss: Callable[[], Tensor]) -> dict[str, str]:
    """Vectors that were reached but that the loss does not depend on: a bias all keys share, one before a batch norm.

    Matrices are never excused this way: a matrix without effect is a branch that the inputs do not exercise.
    """
    reached = [n for n in names if parameters[n].dim() <= 1 and parameters[n].grad is not None]
    before = float(loss()) if reached else 0.0
    found = {}
    for name in reached:
        parameter, kept = parameters[name], parameters[name].clone()
        parameter.add_(PUSH * torch.randn(kept.shape, generator=generator(0, name)))
        moved = abs(float(loss()) - before)
        parameter.copy_(kept)
        if moved <= UNMOVED * max(1.0, abs(before)):
            found[name] = "the loss does not depend on it: what follows removes any shift"
    return found
