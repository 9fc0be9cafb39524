"""What an agent is told of an operator, of any call of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from neuronqa.fixqueue.operator_child import describe


@pytest.mark.parametrize(
    ("name", "call", "expected"),
    [
        ("aten::minimum", ([torch.tensor([1.0, 4.0]), torch.tensor([2.0, 3.0])], {}), ["1", "3"]),
        ("aten::fmod.Tensor", ([torch.tensor([1.25, 2.0]), 0.5], {}), ["0.25", "0"]),
        ("aten::sum.dim_IntList", ([torch.ones(2, 2), [1]], {"keepdim": True}), ["2", "2"]),
    ],
)
def test_a_call_is_shown_with_the_values_of_the_cpu(name: str, call: Any, expected: list[str], tmp_path: Path) -> None:
    torch.save(call, tmp_path / "operator.pt")
    said = describe(name, tmp_path / "operator.pt")
    assert said["schema"].startswith(name)
    assert said["call"]["results"][0]["first"] == expected


def test_a_call_the_cpu_refuses_is_shown_as_refused(tmp_path: Path) -> None:
    torch.save(([torch.ones(2), torch.ones(3)], {}), tmp_path / "operator.pt")
    assert "RuntimeError" in describe("aten::minimum", tmp_path / "operator.pt")["call"]["raises"]


def test_an_operator_this_pytorch_lacks_is_described_by_nothing() -> None:
    assert describe("aten::no_such_operator", None)["schema"] == ""
