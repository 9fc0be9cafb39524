"""`python -m neuronqa.device.neuron.selftest`: loads the device and tests it; the simulated one with profile `ideal`.

`NEURONQA_SELFTEST_DEVICE` names another device: what only ours promises is then not asked.

Prints JSON lines: one a behaviour, one an operator and dtype, and last a summary.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from fnmatch import fnmatchcase
from importlib.util import find_spec
from typing import Any, Final

os.environ.setdefault("OMP_NUM_THREADS", "1")  # forked children hang on threads that stayed behind
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

import torch

from neuronqa.device.neuron import build, neuronx
from neuronqa.device.neuron.adapter import NeuronDevice
from neuronqa.device.neuron.selftest import behaviour, explained, operators, ranks
from neuronqa.device.neuron.selftest.behaviour import DEVICE, LIBRARIES, RANKED
from neuronqa.device.neuron.selftest.explained import Explained
from neuronqa.device.neuron.selftest.forked import forked
from neuronqa.device.neuron.selftest.operators import Verdict
from neuronqa.device.registry import SIMULATED
from neuronqa.domain.build import BuildOrder
from neuronqa.errors import NeuronQAError

PARTS: Final = ("tensors", "training", "ecosystem", "libraries", "ranks")


def load() -> None:
    """Load the device into this process; the simulated one under both its names."""
    if DEVICE != SIMULATED:
        behaviour.load(BuildOrder(device=DEVICE, profile=""))
        return
    device = behaviour.load(BuildOrder(device=DEVICE, profile="ideal", binary=str(build.ensure().path)))
    assert isinstance(device, NeuronDevice)
    neuronx.install(device.shim)


def behaviours(patterns: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Every behaviour in a child that loads the device itself, as a process of its own would."""
    for part in PARTS:
        __import__(f"neuronqa.device.neuron.selftest.{part}")
    have_libraries = find_spec("accelerate") is not None
    for name, function in behaviour.asked():
        if not any(fnmatchcase(name, pattern) for pattern in patterns):
            continue
        if name in LIBRARIES and not have_libraries:
            continue

        def run(function: Any = function) -> str:
            load()
            function()
            return ""

        ended = ranks.run(name, load) if name in RANKED else forked(run)
        yield {"behaviour": name, "passed": not ended.error, "reason": ended.error}


def judged(patterns: tuple[str, ...], dtypes: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Every operator in every dtype."""
    known = explained.load() if DEVICE == SIMULATED else Explained()
    for row in operators.judge(patterns, dtypes, known, load):
        yield {**asdict(row), "verdict": row.verdict.value}


def main() -> int:
    parser = argparse.ArgumentParser(description="Test a device.")
    parser.add_argument("--ops", nargs="*", default=["*"], metavar="PATTERN")
    parser.add_argument("--behaviours", nargs="*", default=["*"], metavar="PATTERN")
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    held: Counter[bool] = Counter()
    verdicts: Counter[str] = Counter()
    try:
        for line in behaviours(tuple(options.behaviours)):
            held[line["passed"]] += 1
            print(json.dumps(line), flush=True)
        for line in judged(tuple(options.ops), tuple(options.dtypes)) if options.ops else ():
            verdicts[line["verdict"]] += 1
            print(json.dumps(line), flush=True)
    except NeuronQAError as error:
        print(error, file=sys.stderr)
        return int(error.exit_code)
    ops = {verdict.value: verdicts[verdict.value] for verdict in Verdict}
    print(json.dumps({"ops": ops, "behaviours": {"passed": held[True], "failed": held[False]}}), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
