"""Modules for drills of the fix queue: a linear layer, one operator after it, and a loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

Made = tuple[nn.Module, dict[str, Any]]
OPERATORS: dict[str, Callable[[Tensor], Tensor]] = {
    "maximum": lambda x: torch.maximum(x, x.flip(-1) * 0.5),
    "minimum": lambda x: torch.minimum(x, x.flip(-1) * 0.5),
    "add": lambda x: torch.relu(x) + x.flip(0),
    "hypot": lambda x: torch.hypot(x, x.flip(-1) + 1.0),
    "expm1": torch.expm1,
    "log2": lambda x: torch.log2(x.abs() + 0.5),
    "log10": lambda x: torch.log10(x.abs() + 0.5),
    "exp2": torch.exp2,
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "tan": lambda x: torch.tan(x * 0.1),
    "sinc": torch.sinc,
    "frac": torch.frac,
    "xlogy": lambda x: torch.xlogy(x, x.flip(-1).abs() + 0.5),
    "hardtanh": functional.hardtanh,
    "hardsigmoid": functional.hardsigmoid,
    "hardswish": functional.hardswish,
    "leaky_relu": functional.leaky_relu,
    "elu": functional.elu,
    "mish": functional.mish,
    "softshrink": functional.softshrink,
    "hardshrink": functional.hardshrink,
    "log_sigmoid": functional.logsigmoid,
    "mse_loss": lambda x: functional.mse_loss(x, x.flip(0) * 0.5, reduction="none"),
    "roll": lambda x: torch.roll(x, 1, -1),
    "glu": lambda x: functional.glu(torch.cat([x, x.flip(-1)], -1), -1),
    "baddbmm": lambda x: torch.baddbmm(x[None], x[None], x.T[None] @ x[None]),
    "logsumexp": lambda x: torch.logsumexp(x, -1),
    "heaviside": lambda x: x * torch.heaviside(x.detach(), x.detach().new_ones(1)),
    "fmax": lambda x: torch.fmax(x, x.flip(-1) * 0.5),
    "isposinf": lambda x: x * (~torch.isposinf(x.detach())),
    "rsub": lambda x: torch.rsub(x, 2.0),
}


class Host(nn.Module):
    """Its inputs are no multiples of anything, and its gradients are not all one."""

    def __init__(self, op: str, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.op = OPERATORS[op]

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        y = self.op(self.layer(x))
        return {"out": y, "loss": (y * y.cos()).mean()}


def host(op: str, rows: int, width: int) -> Made:
    """`op` over `rows` x `width` numbers."""
    return Host(op, width), {"x": torch.randn(rows, width)}
