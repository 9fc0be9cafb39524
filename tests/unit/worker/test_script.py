"""A script as the reference: its run on the CPU, its plain run in float64 beside it, and what it raises as data."""

import hashlib
import os
from pathlib import Path

import pytest
import torch.distributed as dist

from neuronqa.domain.observation import Progress
from neuronqa.domain.workload import ScriptSpec, Workload
from neuronqa.worker.exchange import read_observation, read_tensors
from neuronqa.worker.script import record

SCRIPT = """
import torch, torch.distributed as dist

def third(place):
    if not place.whole:
        place.join()
    value = torch.ones(4, dtype=place.dtype) / 3
    if not place.whole:
        dist.all_reduce(value)
    return {"third": value, "count": 4}

def broken(place):
    raise ValueError("on purpose")

def alone(place):
    if place.whole:
        raise NotImplementedError("no plain run")
    return {"x": torch.ones(1)}
"""
ANNOUNCED = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (*ANNOUNCED, "TORCHELASTIC_RUN_ID"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "out").mkdir()
    return tmp_path


def recorded(folder: Path, function: str) -> Path:
    path = folder / "script.py"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    workload = Workload(ScriptSpec(source=str(path), source_sha256=digest, function=function))
    out = folder / "out"
    record({"workload": workload.to_json(), "variant": "eager/fp32/gradient", "out": str(out)}, lambda _: None)
    return out


def test_a_scripts_run_lies_beside_its_plain_run_with_the_distance(folder: Path) -> None:
    out = recorded(folder, "third")
    arrays, observation = read_tensors(out), read_observation(out)
    assert observation is not None
    assert observation.reached is Progress.DONE
    assert observation.dtypes["same/output/rank.0.third"] == "float32"
    assert arrays["oracle/output/rank.0.third"].dtype == "float64"
    assert 0 < arrays["noise/output/rank.0.third"].max() < 1e-7
    assert arrays["same/output/rank.0.count"] == 4
    assert not dist.is_initialized()


def test_what_a_script_raises_is_data(folder: Path) -> None:
    observation = read_observation(recorded(folder, "broken"))
    assert observation is not None
    assert observation.failure is not None
    assert observation.failure.error == "ValueError"
    assert observation.reached is Progress.REFERENCE


def test_a_script_without_a_plain_run_has_no_oracle(folder: Path) -> None:
    observation = read_observation(recorded(folder, "alone"))
    assert observation is not None
    assert "no plain run" in observation.no_oracle
