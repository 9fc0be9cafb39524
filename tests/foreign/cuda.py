"""Proves NeuronQA on a CUDA machine: the bring-up checklist, the contract, and a short sweep. Needs one GPU.

python tests/foreign/cuda.py
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from neuronqa.testing import DeviceContract

COMMAND = [sys.executable, "-c", "from neuronqa.cli.main import run; run()"]


class TestCuda(DeviceContract):
    device = "cuda"


def main() -> int:
    if not torch.cuda.is_available():
        print("there is no CUDA device here", file=sys.stderr)
        return 4
    codes = [
        subprocess.run([*COMMAND, "device", "selftest", "--device", "cuda", "--markdown"]).returncode,
        int(pytest.main(["-q", str(Path(__file__))])),
        subprocess.run(
            [*COMMAND, "sweep", "--catalog", "top-100k", "--device", "cuda", "--policy", "quick", "--budget", "10m"]
        ).returncode,
    ]
    return max(codes)


if __name__ == "__main__":
    raise SystemExit(main())
