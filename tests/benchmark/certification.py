"""How sharp are the checks? `neuronqa controls` over so many workloads that it is done in parts.

Trials are appended to a file, one JSON object a line, in an order drawn from a seed, so that whatever is done by the
end of the time is a fair sample of all: every kind of fault, in every workload, eager and compiled. Started again it
goes on. Prints the figures of all trials in the file.

    PYTHONPATH=. python tests/benchmark/certification.py TRIALS [seconds] [workloads] [workers] [profile]
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from neuronqa import catalog as catalogs
from neuronqa.device.prepare import prepare
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Mode, Variant
from neuronqa.domain.identity import canonical_json, relaxed, strict
from neuronqa.domain.policy import Thresholds
from neuronqa.domain.trial import Plant, Trial
from neuronqa.sweep import certification
from neuronqa.sweep.certification import Assignment

VARIANTS = ("eager/fp32/train", "compile/fp32/train")
TOGETHER = 6
"""Kinds planted into one workload at a time: they share its reference and its run without a fault."""
COMPILED = 3.0
"""Compiled trials cost three times as much, and come so much later."""
SEED = 6


def parts(workloads: int, texts: Sequence[str] = VARIANTS, kinds: frozenset[str] = frozenset()) -> list[Assignment]:
    """Everything there is to do, in small parts, shuffled."""
    chosen = certification.choose(catalogs.open("top-100k"), workloads)
    variants = [Variant.parse(text) for text in texts]
    shuffled = random.Random(SEED)
    made: list[Assignment] = []
    for whole in certification.assignments(chosen, variants, "neuron", kinds):
        plants = list(whole.plants)
        shuffled.shuffle(plants)
        groups = (tuple(plants[start : start + TOGETHER]) for start in range(0, len(plants), TOGETHER))
        made.extend(replace(whole, plants=group) for group in groups)
    return sorted(made, key=lambda one: shuffled.random() * (COMPILED if one.variant.mode is Mode.COMPILE else 1.0))


def remaining(made: list[Assignment], done: set[tuple[str, str, str]]) -> Iterator[Assignment]:
    for one in made:
        left = tuple(p for p in one.plants if _name(one.workload.hash, str(one.variant), p) not in done)
        if left:
            yield replace(one, plants=left)


def read(path: Path) -> list[Trial]:
    lines = path.read_text().splitlines() if path.exists() else []
    rows: list[dict[str, Any]] = [relaxed(json.loads(line)) for line in lines]
    trials = (Trial(**{**row, "plant": Plant(**row["plant"])}) for row in rows)
    return list({_name(one.workload, one.variant, one.plant): one for one in trials}.values())


def _name(workload: str, variant: str, plant: Plant) -> tuple[str, str, str]:
    return workload, variant, canonical_json([plant.kind, plant.fault])


def go_on(path: Path, made: list[Assignment], seconds: float, workers: int, profile: str) -> list[Trial]:
    """Make what `path` does not hold yet, for so long. Returns all it holds then."""
    until = time.monotonic() + seconds
    order = prepare(BuildOrder(device="neuron", profile=profile)).order
    left = remaining(made, {_name(one.workload, one.variant, one.plant) for one in read(path)})
    with path.open("a") as file:
        while time.monotonic() < until:
            batch = [one for _, one in zip(range(2 * workers), left, strict=False)]
            if not batch:
                break
            for trial in certification.carry_out(batch, order, Thresholds(), workers):
                file.write(json.dumps(strict(asdict(trial))) + "\n")
                file.flush()
    return read(path)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    seconds = float(arguments[1]) if len(arguments) > 1 else 600.0
    workloads = int(arguments[2]) if len(arguments) > 2 else 40
    workers = int(arguments[3]) if len(arguments) > 3 else 2
    profile = arguments[4] if len(arguments) > 4 else "ideal"
    trials = go_on(Path(arguments[0]), parts(workloads), seconds, workers, profile)
    print(json.dumps(strict(certification.summary(trials, "neuron")), indent=2))
