"""What checking costs beside the CPU run of the same steps (as many as a policy asks for by default), in CPU seconds.

`comparison` is the judge's work on one device run; `oracle` the float64 run; the envelope (the perturbed runs) is part
of the cached reference and stated apart, and so is the search for the operator to blame.

    PYTHONPATH=. python tests/benchmark/check_cost.py [family ...]
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from neuronqa.domain.policy import Thresholds
from neuronqa.worker.exchange import read_observation
from tests.integration.roles.families import FAMILIES
from tests.integration.roles.played import Stage, family

REPEATS = 5


def main(names: list[str]) -> dict[str, Any]:
    rows = {
        f"{name} {variant}": _measure(name, variant)
        for name in names
        for variant in ("eager/fp32/train", "eager/bf16/train")
    }
    shares = ("comparison", "oracle", "oracle_and_comparison", "envelope", "search")
    return {
        "schema_version": 1,
        "unit": "CPU seconds; the rest in runs of the same steps on the CPU",
        "median": {share: round(statistics.median(row[share] for row in rows.values()), 3) for share in shares},
        "largest": {share: round(max(row[share] for row in rows.values()), 3) for share in shares},
        "rows": rows,
    }


def _measure(name: str, variant: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        stage = replace(family(Path(folder), name, variant), steps=Thresholds().train_steps)
        stage.record()  # The first run pays for what torch loads when it is first used.
        stage.record()
        seconds = dict(_seconds(stage))
        stage.observe()
        compared = min(_timed(stage.judge) for _ in range(REPEATS))
        searched = _timed(stage.search)
    cpu = seconds["cpu"]
    return {
        "cpu_s": round(cpu, 4),
        "comparison": round(compared / cpu, 3),
        "oracle": round(seconds["oracle"] / cpu, 3),
        "oracle_and_comparison": round((seconds["oracle"] + compared) / cpu, 3),
        "envelope": round(seconds["perturbed"] / cpu, 3),
        "search": round(searched / cpu, 3),
    }


def _seconds(stage: Stage) -> dict[str, float]:
    observation = read_observation(stage.reference)
    assert observation is not None
    return dict(observation.seconds)


def _timed(work: Any) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(main(sys.argv[1:] or list(FAMILIES)), indent=2))
