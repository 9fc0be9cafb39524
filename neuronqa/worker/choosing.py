"""Choices that operators make between numbers, and how many of them rounding could have made otherwise."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor

CHOOSING: Final = frozenset({"aten::topk", "aten::argmax", "aten::argmin"})
ROUNDINGS: Final = 16.0
"""What a deep model's activations are off by, in roundings of their own scale: closer numbers may change places."""


def choices(func: Any, given: tuple[Any, Any]) -> tuple[int, int]:
    """How many rows a choosing operator chose in, and in how many of them the last that was chosen and the first that
    was not are closer than rounding moves them. Nothing for other operators."""
    if func._schema.name not in CHOOSING:
        return 0, 0
    named = {argument.name: value for argument, value in zip(func._schema.arguments, given[0], strict=False)}
    named |= given[1]
    numbers, taken, dim = named["self"], int(named.get("k", 1)), named.get("dim", -1 if "k" in named else None)
    if not isinstance(numbers, Tensor) or not numbers.is_floating_point() or numbers.dim() == 0:
        return 0, 0
    rows = numbers.double().flatten() if dim is None else numbers.double().movedim(dim, -1)
    if rows.shape[-1] <= taken:
        return 0, 0
    largest = func._schema.name != "aten::argmin" and named.get("largest", True)
    best = rows.topk(taken + 1, dim=-1, largest=largest).values
    margin = (best[..., taken - 1] - best[..., taken]).abs()
    moved = ROUNDINGS * torch.finfo(numbers.dtype).eps * rows.square().mean(-1).sqrt()
    return margin.numel(), int((margin <= moved).sum())
