"""Choices that operators make between numbers, and how many of them rounding could have made otherwise."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor

CHOOSING: Final = frozenset({"aten::topk", "aten::argmax", "aten::argmin"})
RANKING: Final = CHOOSING | {"aten::sort", "aten::argsort", "aten::kthvalue"}
"""Operators whose last result are indices, any of which is right among equal numbers."""
ROUNDINGS: Final = 16.0
"""What a deep model's activations are off by, in roundings of their own scale: closer numbers may change places."""


def choices(func: Any, given: tuple[Any, Any]) -> tuple[int, int]:
    """How many rows a choosing operator chose in, and in how many of them the last that was chosen and the first that
    was not are closer than rounding moves them. Nothing for other operators."""
    if func._schema.name not in CHOOSING:
        return 0, 0
    named = _named(func, given)
    numbers, taken, dim = named["self"], int(named.get("k", 1)), _dimension(func, named)
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


def ranked(func: Any, given: tuple[Any, Any], found: Tensor, host: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What a device's indices and the host's choose from the numbers that were ranked, twice the host's; the indices
    themselves where the device's have another shape or lie outside."""
    named = _named(func, given)
    numbers, dim = named["self"], _dimension(func, named)
    rows = numbers.flatten() if dim is None or numbers.dim() == 0 else numbers.movedim(dim, -1)
    index = found.cpu()
    if index.shape != host.shape or not bool(((index >= 0) & (index < rows.shape[-1])).all()):
        return index, host, host
    right = _picked(rows, host, dim)
    return _picked(rows, index, dim), right, right


def _picked(rows: Tensor, index: Tensor, dim: int | None) -> Tensor:
    if rows.dim() == 1:
        return rows[index]
    kept = index.dim() == rows.dim()
    return rows.gather(-1, index.movedim(dim or 0, -1) if kept else index[..., None])


def _named(func: Any, given: tuple[Any, Any]) -> dict[str, Any]:
    positional = zip(func._schema.arguments, given[0], strict=False)
    return {**{argument.name: value for argument, value in positional}, **given[1]}


def _dimension(func: Any, named: dict[str, Any]) -> int | None:
    """Along which it ranks; none where it ranks all numbers as one row."""
    chosen = named.get("dim", None if func._schema.name in ("aten::argmax", "aten::argmin") else -1)
    return None if chosen is None else int(chosen)
