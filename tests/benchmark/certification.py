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
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from neuronqa import catalog as catalogs
from neuronqa.device.prepare import prepare
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Mode, Variant
from neuronqa.domain.identity import strict
from neuronqa.domain.trial import Trial
from neuronqa.sweep import certification
from neuronqa.sweep.certification import Assignment
from neuronqa.sweep.policies import load_policy
from neuronqa.sweep.trials import TrialLog

VARIANTS = ("eager/fp32/train", "compile/fp32/train")
TOGETHER = 26
"""Kinds planted into one workload at a time: they share its reference and a process."""
COMPILED = 10.0
"""Compiled trials cost so many times as much, and come so much later."""
SEED = 6
POLICY = "quick"
"""Whose thresholds are held to: that of the main job, which watches training for eight steps."""


def parts(workloads: int, texts: Sequence[str] = VARIANTS, kinds: frozenset[str] = frozenset()) -> list[Assignment]:
    """Everything there is to do, in small parts, shuffled."""
    chosen = certification.choose(catalogs.open("top-100k"), workloads)
    variants = [Variant.parse(text) for text in texts]
    shuffled = random.Random(SEED)
    whole = [
        replace(one, plants=tuple(shuffled.sample(one.plants, len(one.plants))))
        for one in certification.assignments(chosen, variants, "neuron", kinds)
    ]
    made = certification.divided(whole, TOGETHER)
    return sorted(made, key=lambda one: shuffled.random() * (COMPILED if one.variant.mode is Mode.COMPILE else 1.0))


def go_on(path: Path, made: list[Assignment], seconds: float, workers: int, profile: str) -> list[Trial]:
    """Make what `path` does not hold yet, for so long. Returns all it holds then."""
    until = time.monotonic() + seconds
    log = TrialLog(path)
    order = prepare(BuildOrder(device="neuron", profile=profile)).order
    for part, trials in certification.carry_out(log.remaining(made), order, load_policy(POLICY).thresholds, workers):
        log.append(part, trials)
        if time.monotonic() > until:
            break
    return list(log)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    seconds = float(arguments[1]) if len(arguments) > 1 else 600.0
    workloads = int(arguments[2]) if len(arguments) > 2 else 40
    workers = int(arguments[3]) if len(arguments) > 3 else 2
    profile = arguments[4] if len(arguments) > 4 else "ideal"
    trials = go_on(Path(arguments[0]), parts(workloads), seconds, workers, profile)
    print(json.dumps(strict(certification.summary(trials, "neuron")), indent=2))
