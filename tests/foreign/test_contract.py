"""The contract on devices that are not ours: a compile backend for the CPU, and a plugin with a device of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from neuronqa.testing import DeviceContract

TOY = Path(__file__).with_name("toy")


@pytest.mark.full
class TestInductor(DeviceContract):
    device = "cpu:inductor"


@pytest.mark.full
class TestToy(DeviceContract):
    device = "toy"

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def installed(cls) -> Iterator[None]:
        """As if `pip install toy` had been run, for this process and those it starts."""
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(TOY)
            patch.setenv("PYTHONPATH", os.pathsep.join([str(TOY), *sys.path]))
            yield


@pytest.mark.full
def test_the_checklist_of_another_device_is_a_table_for_a_readme() -> None:
    command = "from neuronqa.cli.main import run; run()"
    options = ["--device", "cpu:aot_eager", "--ops", "add,mm,softmax", "--dtypes", "float32", "--markdown"]
    done = subprocess.run(
        [sys.executable, "-c", command, "device", "selftest", *options],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["| cpu:aot_eager | holds | what does not |", "|---|---|---|"]
    assert "| a compiled module gives the eager results and gradients | yes |  |" in lines
    assert lines[-1] == "| operators in float32 | 3 of 3 |  |"
