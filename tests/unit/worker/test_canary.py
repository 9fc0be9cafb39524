"""A machine that gets arithmetic wrong is told from one that does not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from neuronqa.worker import canary, roles
from neuronqa.worker.exchange import CANARY_FILE


def test_a_sound_machine_gets_everything_right() -> None:
    assert canary.wrong() == ""


def test_a_child_in_this_role_leaves_the_answer(tmp_path: Path) -> None:
    roles.run("canary", {"out": str(tmp_path)}, lambda _: None)
    assert (tmp_path / CANARY_FILE).read_text() == ""


@pytest.mark.parametrize(
    ("operation", "named"),
    [("__matmul__", "matmul in float32"), ("sum", "sum and order"), ("sort", "sum and order")],
)
def test_what_is_off_by_the_last_bit_is_named(operation: str, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = getattr(torch.Tensor, operation)

    def off(tensor: torch.Tensor, *arguments: object) -> object:
        found = right(tensor, *arguments)
        values = found.values if operation == "sort" else found
        flat = values.detach().view(-1)
        flat[-1] = torch.nextafter(flat[-1], torch.tensor(torch.inf, dtype=flat.dtype))
        return found

    monkeypatch.setattr(torch.Tensor, operation, off)
    assert canary.wrong() == named
