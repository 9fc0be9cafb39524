"""Inference is compared in other sizes too: one row alone, and on either side of the tiles."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from neuronqa.domain.outcome import Check, Kind
from neuronqa.worker.boundaries import LENGTHS, resized
from neuronqa.worker.exchange import read_tensors
from neuronqa.workload.runnable import Runnable
from tests.integration.roles.played import Stage, family


class Tokens(nn.Module):
    """An embedding whose mean goes through a table with a limit. Off home it is wrong where a second tile begins."""

    home = True

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(50, 8), nn.Embedding(520, 8)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> dict[str, Tensor]:
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        hidden = (self.words(input_ids) + self.places(places)) * attention_mask[..., None]
        if not Tokens.home and input_ids.shape[1] > 128:
            hidden[:, 128:] *= 0.5
        if not Tokens.home and input_ids.shape[1] > 512:
            raise RuntimeError("too long for the device")
        return {"hidden": hidden}


def tokens() -> Runnable:
    ids = torch.arange(20).view(2, 10)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return Runnable(module=Tokens(), inputs=inputs, loss=lambda outputs: outputs["hidden"].square().mean())


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, "tokens", tokens, "eager/fp32/infer")


def test_inputs_are_cut_to_a_row_and_stretched_to_either_side_of_a_tile() -> None:
    given = tokens()
    sizes = {name: tuple(inputs["input_ids"].shape) for name, inputs in resized(given.module, given.inputs)}
    assert sizes == {"row.0": (1, 10), **{f"length.{n}": (2, n) for n in LENGTHS}}


def test_a_model_is_not_asked_for_more_positions_than_it_has(tmp_path: Path) -> None:
    stage = family(tmp_path, "gpt2", "eager/fp32/infer")
    stage.record()
    assert stage.observe()[Check.PARITY].outcome.kind is Kind.PARITY_PASS
    sizes = {name.split("/")[1].split(".")[0] for name in read_tensors(stage.device) if name.startswith("output/")}
    assert sizes == {"loss", "logits", "row"}


def test_what_is_wrong_only_beyond_a_tile_is_found_and_so_is_a_size_that_only_the_device_refuses(stage: Stage) -> None:
    stage.record()
    assert stage.observe()[Check.PARITY].outcome.kind is Kind.PARITY_PASS
    Tokens.home = False
    try:
        found = stage.observe()[Check.PARITY]
    finally:
        Tokens.home = True
    assert found.outcome.kind is Kind.PARITY_STRUCTURE
    wrong = {one["tensor"]: one["kind"] for one in found.evidence["wrong"]}
    assert wrong["output/length.513.hidden"] == "parity:structure"
    assert wrong["output/length.129.hidden"] == "parity:scatter"
    assert not {"output/row.0.hidden", "output/length.127.hidden", "output/length.128.hidden"} & set(wrong)
