"""A file of trials keeps what is done, whenever its writer ends."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from neuronqa.domain.case import Variant
from neuronqa.domain.trial import NOTHING, Plant, Trial
from neuronqa.errors import BadInput
from neuronqa.sweep.certification import Assignment, divided
from neuronqa.sweep.trials import TrialLog
from tests.builders import workload

VARIANT = "eager/fp32/train"
SCALES = tuple(
    Plant(kind="scale", op="aten::mm", check="parity", fault={"kind": "scale", "factor": factor})
    for factor in (1.5, 1.1, 1.01)
)
GIVEN = Assignment(workload=workload("llama"), variant=Variant.parse(VARIANT), plants=SCALES)


def tried(plant: Plant) -> Trial:
    found = {"run": "run:pass", "parity": "parity:scale(aten::mm float32)"}
    return Trial(
        plant=plant,
        family="llama",
        workload=GIVEN.workload.hash,
        variant=VARIANT,
        acted=True,
        effect=math.inf,
        plain={"run": "run:pass"},
        found=found,
    )


def test_an_assignment_is_divided_without_loss() -> None:
    parts = list(divided([GIVEN], 2))
    assert [len(part.plants) for part in parts] == [2, 1]
    assert tuple(plant for part in parts for plant in part.plants) == SCALES


def test_what_is_written_is_read_again_and_not_made_again(tmp_path: Path) -> None:
    log = TrialLog(tmp_path / "trials.jsonl")
    log.append(GIVEN, [tried(SCALES[0]), tried(SCALES[1])])
    again = TrialLog(tmp_path / "trials.jsonl")
    assert list(again) == list(log) == [tried(SCALES[0]), tried(SCALES[1])]
    assert list(again.remaining([GIVEN])) == [replace(GIVEN, plants=SCALES[2:])]
    again.append(GIVEN, [tried(SCALES[2])])
    assert list(again.remaining([GIVEN])) == []


@pytest.mark.parametrize("trials", [[], [tried(Plant(kind=NOTHING, op=""))]])
def test_a_workload_that_takes_no_trial_is_asked_once(tmp_path: Path, trials: list[Trial]) -> None:
    TrialLog(tmp_path / "trials.jsonl").append(GIVEN, trials)
    again = TrialLog(tmp_path / "trials.jsonl")
    assert list(again) == trials
    assert list(again.remaining([GIVEN])) == []


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.999])
def test_a_line_that_was_cut_off_is_made_again(tmp_path: Path, kept: float) -> None:
    path = tmp_path / "trials.jsonl"
    TrialLog(path).append(GIVEN, [tried(SCALES[0])])
    whole = path.read_text()
    TrialLog(path).append(GIVEN, [tried(SCALES[1])])
    rest = path.read_text().removeprefix(whole)
    path.write_text(whole + rest[: int(kept * len(rest))])
    log = TrialLog(path)
    assert list(log) == [tried(SCALES[0])]
    log.append(GIVEN, [tried(SCALES[2])])
    assert list(TrialLog(path)) == [tried(SCALES[0]), tried(SCALES[2])]


def test_without_a_file_trials_are_kept_until_the_end() -> None:
    log = TrialLog(None)
    log.append(GIVEN, [tried(SCALES[0])])
    assert len(log) == 1


@pytest.mark.parametrize("line", ["what is this", "[]", "1", "{}", '{"plant": {}}', '{"plant": 3, "family": "llama"}'])
def test_a_file_of_something_else_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "trials.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(BadInput, match="line 1 is no trial") as caught:
        TrialLog(path)
    assert caught.value.where == str(path)
    assert path.read_text() == line + "\n"
