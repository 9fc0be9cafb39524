"""Small classifiers that differ in one operator between their layers. Needs torch only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

Made = tuple[nn.Module, dict[str, Any], Callable[[Any], Tensor]]


class Classifier(nn.Module):
    """Two layers with something between them that has no gradient of its own."""

    def __init__(self, twist: Callable[[Tensor], Tensor], width: int) -> None:
        super().__init__()
        self.first = nn.Linear(16, width)
        self.last = nn.Linear(width, 4)
        self.twist = twist

    def forward(self, x: Tensor, label: Tensor) -> dict[str, Tensor]:
        h = torch.tanh(self.first(x))
        with torch.no_grad():
            scale = self.twist(h.detach())
        logits = self.last(h * (1.0 + 0.1 * scale))
        return {"logits": logits, "loss": functional.cross_entropy(logits, label)}


def made(twist: Callable[[Tensor], Tensor], width: int) -> Made:
    return Classifier(twist, width), {"x": torch.randn(8, 16), "label": torch.arange(8) % 4}, lambda out: out["loss"]


def sound() -> Made:
    return made(torch.neg, 24)


def least() -> Made:
    return made(lambda h: torch.minimum(h, -h), 32)


def most() -> Made:
    return made(lambda h: torch.fmax(h, 0.5 * h), 40)


def between() -> Made:
    return made(lambda h: torch.minimum(torch.fmax(h, -h), 0.5 * h + 0.2), 48)


def rest() -> Made:
    return made(lambda h: torch.fmod(h, 0.5), 56)
