"""Factories that are broken in one way each."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import torch
from torch import Tensor, nn


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


def total(output: Tensor) -> Tensor:
    return output.square().sum()


def raises() -> Any:
    return deeper({})


def deeper(table: dict[str, Any]) -> Any:
    return table["missing"]


def hangs() -> Any:
    while True:
        time.sleep(0.01)


def elsewhere() -> Any:
    return net().to("meta"), torch.randn(3, 4)


def input_elsewhere() -> Any:
    return net(), torch.randn(3, 4, device="meta")


def wrong_device() -> Any:
    return net().to("cuda"), torch.randn(3, 4)


def no_gradient() -> Any:
    return net(), torch.randn(3, 4), lambda output: output.detach().sum()


def frozen() -> Any:
    return net().requires_grad_(False), torch.randn(3, 4)


def leaves() -> Any:
    sys.exit(3)


def leaves_at_once() -> Any:
    os._exit(3)


def nothing() -> None:
    pass


def only_a_module() -> Any:
    return net()


def no_module() -> Any:
    return {"model": net()}, torch.randn(3, 4)


def nothing_to_train() -> Any:
    return nn.ReLU(), torch.randn(3, 4)


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, image: Tensor, mask: Tensor) -> Tensor:
        out: Tensor = self.layer(image) * mask
        return out


def wrong_inputs() -> Any:
    return Masked(), {"pixels": torch.randn(3, 4), "mask": None}


def wrong_shape() -> Any:
    return net(), torch.randn(3, 5)


def vector_loss() -> Any:
    return net(), torch.randn(3, 4), lambda output: output.sum(1)


def loss_of_text() -> Any:
    return net(), torch.randn(3, 4), "mean"


def strange_optimizer() -> Any:
    return net(), torch.randn(3, 4), total, "adam"


def optimizer_of_another() -> Any:
    return net(), torch.randn(3, 4), total, torch.optim.SGD(net().parameters(), lr=0.1)


def endless_recursion() -> Any:
    return endless_recursion()


def eats_memory() -> Any:
    held = []
    while True:
        held.append(torch.ones(1 << 22))


def not_a_number() -> Any:
    return net(), torch.full((3, 4), float("nan"))


def interrupts() -> Any:
    raise KeyboardInterrupt


def prints_a_lot() -> Any:
    """Not broken, only loud."""
    print("x" * (10 << 20))
    return net(), torch.randn(3, 4), lambda output: 8 * output.square().mean()


something = 3
