"""What a check says of a model: its rungs, the first blocker with its line, and what to do."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from neuronqa.checkup.examine import Examiner
from neuronqa.checkup.given import hand_over
from neuronqa.checkup.target import of_factory
from neuronqa.checkup.value import Checkup
from neuronqa.domain.outcome import Rung, Standing
from neuronqa.errors import BadInput, ExitCode
from neuronqa.sweep.policies import load_policy

FILE = Path(__file__).with_name("modules.py")
QUICK = load_policy("quick")


class Sorting(nn.Module):
    """Does what the device has no kernel for."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Any:
        y, _ = x.sort(dim=1)  # the line to be named
        return self.layer(y)


def loss(output: Tensor) -> Tensor:
    labels = torch.arange(8, device=output.device) % 4
    return 8 * nn.functional.cross_entropy(output, labels)


@pytest.fixture(scope="module")
def sorting(examiner: Examiner, tmp_path_factory: pytest.TempPathFactory) -> Checkup:
    module = Sorting()
    kept = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    target = hand_over(tmp_path_factory.mktemp("given"), module, torch.randn(8, 16), loss)
    checkup = examiner.examine(target, QUICK)
    assert all(torch.equal(tensor, kept[name]) for name, tensor in module.state_dict().items())
    return checkup


def test_a_module_in_hand_gets_its_ladder_and_the_line_that_blocks_it(sorting: Checkup) -> None:
    standing = {state.rung: state.standing for state in sorting.rungs}
    assert standing[Rung.RUNS] is Standing.PASS
    assert standing[Rung.NATIVE] is Standing.FAIL
    assert standing[Rung.PARITY] is Standing.PASS
    first = sorting.first
    assert first is not None
    assert first.op.startswith("aten::sort")
    assert first.place is not None
    assert (first.place.file, first.place.function) == (__file__, "forward")
    assert first.place.code.endswith("# the line to be named")
    assert sorting.exit_code is ExitCode.GATE_MISSED


def test_the_text_tells_rungs_blocker_line_and_next_step(sorting: Checkup) -> None:
    text = str(sorting)
    for words in (
        "native",
        "full-graph",
        "first blocker",
        "fallback:",
        f"{Path(__file__).name}:",
        "next",
        "compile tax",
    ):
        assert words in text


def test_the_json_is_strict_and_tells_the_same(sorting: Checkup) -> None:
    told = json.loads(json.dumps(sorting.to_json(), allow_nan=False))
    assert told["schema_version"] == 1
    assert told["green"] is False
    assert told["blockers"][0]["rung"] == "native"
    assert told["blockers"][0]["place"]["function"] == "forward"
    assert {state["rung"] for state in told["rungs"]} >= {"builds", "runs", "native", "parity"}
    assert told["next"]


@pytest.mark.parametrize("name", ["perceptron", "momentum", "loss_over_inputs"])
def test_a_sound_module_is_green(examiner: Examiner, name: str) -> None:
    checkup = examiner.examine(of_factory(FILE, name), QUICK)
    assert checkup.green, str(checkup)
    assert checkup.exit_code is ExitCode.DONE


def test_a_branch_on_data_is_named_by_its_line(examiner: Examiner) -> None:
    first = examiner.examine(of_factory(FILE, "branch_on_data"), QUICK).first
    assert first is not None
    assert str(first.outcome).startswith("graph:break")
    assert first.place is not None
    assert (first.place.file, first.place.code) == (str(FILE), "return torch.tanh(h) if h.sum() > 0 else torch.sin(h)")


def test_what_cannot_travel_is_refused_with_what_to_do(tmp_path: Path) -> None:
    module = Sorting()
    module.handle = os.scandir(tmp_path)  # type: ignore[assignment]
    with pytest.raises(BadInput, match=r"cannot be pickled.*FILE\.py:FACTORY"):
        hand_over(tmp_path, module, torch.randn(8, 16))


def test_a_module_elsewhere_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"the module is on meta.*module\.cpu\(\)"):
        hand_over(tmp_path, Sorting().to("meta"), torch.randn(8, 16))
