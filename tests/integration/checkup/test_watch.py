"""`neuronqa check --watch`: one ladder at once, another after an edit that can change what runs, none after others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from neuronqa.errors import ExitCode

FACTORY = """
import torch
from torch import nn
from part import act

class Mine(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 4)

    def forward(self, x):
        return act(self.layer(x))

def make():
    labels = torch.arange(8) % 4
    return Mine(), torch.randn(8, 16), lambda out: 8 * nn.functional.cross_entropy(out, labels.to(out.device))
"""
SOUND = "def act(x): return x.tanh()\n"
SORTS = "def act(x): return x.sort(dim=1).values\n"


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "mine.py").write_text(FACTORY)
    (tmp_path / "part.py").write_text(SOUND)
    command = ["from neuronqa.cli.main import run; run()", "check", f"{tmp_path}/mine.py:make", "--watch"]
    with subprocess.Popen(
        [sys.executable, "-c", *command, "--policy", "quick", "--json"],
        stdout=subprocess.PIPE,
        stderr=(tmp_path / "said").open("w"),
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    ) as process:
        yield process
        process.kill()


def ladder(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The next JSON document on stdout."""
    text = ""
    assert process.stdout is not None
    for line in process.stdout:
        text += line
        if line == "}\n":
            break
    told: dict[str, Any] = json.loads(text)
    return told


@pytest.mark.full
def test_an_edit_is_checked_and_a_comment_is_not(watched: subprocess.Popen[str], tmp_path: Path) -> None:
    assert ladder(watched)["green"] is True
    (tmp_path / "part.py").write_text(f"# nothing new\n{SOUND}")
    (tmp_path / "part.py").write_text(SORTS)
    told = ladder(watched)
    assert told["green"] is False
    assert "sort" in json.dumps(told["blockers"])
    (tmp_path / "part.py").write_text(SOUND)
    assert ladder(watched)["green"] is True
    watched.send_signal(signal.SIGINT)
    assert watched.wait() == ExitCode.INTERRUPTED
    said = (tmp_path / "said").read_text()
    assert said.count("changed: part.py") == 2
    assert "Traceback" not in said
