"""Arithmetic whose answer is the same on every sound machine: whole numbers small enough that no rounding happens.

A processor, a memory or a library that gets it wrong gets cases wrong as well, and with them the references they are
judged by. So a worker does it in a child of its own after every batch, and gives nothing out when it comes out wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import torch

from neuronqa.worker.exchange import CANARY_FILE

SIZE: Final = 96
"""Sums of so many products of numbers below 8 stay below 2**13; bfloat16 is asked for sums below 2**8 only."""


def sing(request: Mapping[str, Any]) -> None:
    """Leave in `request["out"]` what :func:`wrong` says."""
    (Path(request["out"]) / CANARY_FILE).write_text(wrong())


def wrong() -> str:
    """The name of the first computation that came out wrong; empty if none did."""
    return next((name for name, right in _answers() if not right()), "")


def _answers() -> Iterator[tuple[str, Callable[[], bool]]]:
    yield "matmul in float32", lambda: _product(torch.float32, 8, SIZE)
    yield "matmul in float64", lambda: _product(torch.float64, 8, SIZE)
    yield "matmul in bfloat16", lambda: _product(torch.bfloat16, 3, 48)
    yield "convolution", _convolution
    yield "sum and order", _order
    yield "gradient of a product", _gradient


def _numbers(below: int, rows: int, columns: int, step: int) -> list[list[int]]:
    return [[(row * step + column * 5 + 1) % below for column in range(columns)] for row in range(rows)]


def _product(dtype: torch.dtype, below: int, inner: int) -> bool:
    left, right = _numbers(below, 8, inner, 7), _numbers(below, inner, 8, 3)
    expected = [[sum(a * b[column] for a, b in zip(row, right, strict=True)) for column in range(8)] for row in left]
    found = torch.tensor(left, dtype=dtype) @ torch.tensor(right, dtype=dtype)
    return found.to(torch.float64).tolist() == expected


def _convolution() -> bool:
    signal, kernel = _numbers(8, 1, 64, 7)[0], _numbers(8, 1, 5, 3)[0]
    expected = [sum(a * b for a, b in zip(signal[at : at + 5], kernel, strict=True)) for at in range(60)]
    found = torch.conv1d(torch.tensor([[signal]], dtype=torch.float32), torch.tensor([[kernel]], dtype=torch.float32))
    return found[0, 0].tolist() == expected


def _order() -> bool:
    numbers = [(n * 7919) % 4096 for n in range(4096)]
    tensor = torch.tensor(numbers, dtype=torch.float32)
    return tensor.sum().item() == sum(numbers) and tensor.sort().values.tolist() == sorted(numbers)


def _gradient() -> bool:
    left = torch.tensor(_numbers(8, 8, SIZE, 7), dtype=torch.float32, requires_grad=True)
    right = _numbers(8, SIZE, 8, 3)
    (left @ torch.tensor(right, dtype=torch.float32)).sum().backward()
    expected = [[sum(row) for row in right]] * 8
    return left.grad is not None and left.grad.tolist() == expected
