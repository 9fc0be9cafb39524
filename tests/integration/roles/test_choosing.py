"""Choices are counted, and those that rounding could have made otherwise are told apart."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from neuronqa.worker.choosing import choices

aten = torch.ops.aten
CLOSE = 1e-8
NUMBERS = torch.tensor([[3.0, 2.0, 1.0], [3.0, 2.0, 2.0 - CLOSE], [3.0, 3.0 - CLOSE, 1.0]])

TABLE: list[tuple[Any, tuple[Any, ...], dict[str, Any], tuple[int, int]]] = [
    (aten.topk.default, (NUMBERS, 2), {}, (3, 1)),
    (aten.topk.default, (NUMBERS, 1), {}, (3, 1)),
    (aten.topk.default, (NUMBERS, 1, -1, False), {}, (3, 1)),
    (aten.topk.default, (NUMBERS, 3), {}, (0, 0)),
    (aten.argmax.default, (NUMBERS, -1), {}, (3, 1)),
    (aten.argmax.default, (NUMBERS,), {}, (1, 1)),
    (aten.argmin.default, (NUMBERS, 0), {}, (3, 3)),
    (aten.argmax.default, (torch.arange(3),), {}, (0, 0)),
    (aten.mul.Tensor, (NUMBERS, NUMBERS), {}, (0, 0)),
]


@pytest.mark.parametrize(("func", "args", "kwargs", "expected"), TABLE)
def test_so_many_choices_were_made_and_so_many_were_open(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], expected: tuple[int, int]
) -> None:
    assert choices(func, (args, kwargs)) == expected
