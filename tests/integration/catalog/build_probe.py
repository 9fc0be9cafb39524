"""Builds and runs workloads on the CPU, each in a process of its own: JSON lines in, outcome texts out."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

import torch

from neuronqa.domain.outcome import Kind, Outcome
from neuronqa.domain.workload import Workload
from neuronqa.workload.build import build
from neuronqa.workload.runnable import BuildFailure

DEADLINE_S = 60


def outcome(value: dict[str, Any]) -> str:
    """What building and one backward pass give: a failure of build or inputs, NaN, or a pass."""
    try:
        made = build(Workload.from_json(value))
    except BuildFailure as failure:
        return str(Outcome.of(failure.kind, failure.detail))
    torch.manual_seed(0)
    loss = made.loss(made.module(**made.inputs))
    loss.backward()
    return str(Outcome(Kind.REFERENCE_PASS) if torch.isfinite(loss) else Outcome(Kind.REFERENCE_NON_FINITE, "output"))


def apart(value: dict[str, Any]) -> str:
    """The outcome, or how the process that sought it died."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(DEADLINE_S)
        os.write(writer, outcome(value).encode())
        os._exit(0)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as pipe:
        return pipe.read().decode() or f"died: {status}"


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(apart(json.loads(line))), flush=True)
