"""A script that only imports torch has the device where a profile is named, and torch as it was where none is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
METADATA = "Metadata-Version: 2.1\nName: neuronqa-under-test\nVersion: 0\n"
ENTRY = "[torch.backends]\nneuronqa = neuronqa.device.neuron.autoload:load\n"
SCRIPT = """
import torch
from torch import nn
model = nn.Linear(4, 2).to("neuron")
model(torch.ones(3, 4, device="neuron")).sum().backward()
import torch_neuronx
print(model.weight.grad.device, torch_neuronx.get_fallback_ops(), torch.accelerator.current_accelerator())
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """As if the package had been installed, for the children a test starts."""
    info = tmp_path / "neuronqa_under_test-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text(ENTRY)
    kept = {name: value for name, value in os.environ.items() if name != "TORCH_DEVICE_BACKEND_AUTOLOAD"}
    return {**kept, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}


def run(text: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True)


def test_a_script_runs_on_the_device_with_no_code_of_ours_in_it(environment: dict[str, str]) -> None:
    done = run(SCRIPT, {**environment, "NEURONQA_PROFILE": "ideal"})
    assert done.stdout == "neuron:0 [] neuron\n", done.stderr


def test_torch_is_as_it_was_where_no_profile_is_named(environment: dict[str, str]) -> None:
    done = run(
        "import torch, sys; print(torch._C._get_privateuse1_backend_name(), 'torch_neuronx' in sys.modules)",
        environment,
    )
    assert done.stdout == "privateuseone False\n", done.stderr


def test_an_unknown_profile_says_so_and_what_there_is(environment: dict[str, str]) -> None:
    done = run("import torch", {**environment, "NEURONQA_PROFILE": "nosuch"})
    assert done.returncode != 0
    assert "nosuch" in done.stderr
    assert "trn2-sdk2.33" in done.stderr
