"""Choices are counted, and those that rounding could have made otherwise are told apart."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from neuronqa.worker.choosing import choices, ranked

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


ROWS = torch.tensor([[1.0, 3.0, 3.0], [5.0, 4.0, 2.0]])
RANKED: list[tuple[Any, tuple[Any, ...], Any, bool]] = [
    (aten.topk.default, (ROWS, 2), [[1, 2], [0, 1]], True),
    (aten.topk.default, (ROWS, 2), [[2, 1], [0, 1]], True),
    (aten.topk.default, (ROWS, 2), [[2, 1], [0, 2]], False),
    (aten.topk.default, (ROWS, 1, 0), [[1, 1, 0]], True),
    (aten.topk.default, (ROWS, 2), [[2, 1], [0, 3]], False),
    (aten.argmax.default, (ROWS,), 3, True),
    (aten.argmax.default, (ROWS,), 4, False),
    (aten.argmax.default, (ROWS, 0), [1, 1, 0], True),
    (aten.argmax.default, (ROWS, 1, True), [[2], [0]], True),
    (aten.sort.default, (ROWS.int(),), [[0, 2, 1], [2, 1, 0]], True),
    (aten.kthvalue.default, (ROWS, 2), [2, 1], True),
]


@pytest.mark.parametrize(("func", "args", "index", "right"), RANKED)
def test_indices_are_judged_by_what_they_choose(func: Any, args: tuple[Any, ...], index: Any, right: bool) -> None:
    results = func(*args)
    host = results[-1] if isinstance(results, tuple) else results
    found, expected, _ = ranked(func, (args, {}), torch.tensor(index), host)
    assert torch.equal(found, expected) is right
