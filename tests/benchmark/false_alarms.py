"""How often is a right device called wrong?

Runs popular workloads on a device without faults (profile `ideal`) and with good twins planted into a
device of real numerics, eager and compiled, fp32 and bf16, and counts every verdict that blames the device and every
check that a twin fails and the same run without it does not. `below`: the rate is below this with 95 % confidence.
Trials are appended to FOLDER; started again it goes on.

    PYTHONPATH=. python tests/benchmark/false_alarms.py FOLDER [seconds] [workloads] [workers] [variant ...]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from neuronqa.domain.identity import strict
from neuronqa.domain.trial import HARMLESS, Trial
from neuronqa.sweep import certification
from tests.benchmark.certification import go_on, parts

PROFILES = ("ideal", "trn2-sdk2.33")
VARIANTS = ("eager/fp32/train", "eager/bf16/train", "compile/fp32/train", "compile/bf16/train")
TWINS = frozenset({"twin-noise", "twin-reordered", "twin-tiled", "twin-identity"})


def main(folder: Path, seconds: float, workloads: int, workers: int, variants: list[str]) -> dict[str, Any]:
    made = parts(workloads, variants, TWINS)
    trials: list[Trial] = []
    for profile in PROFILES:
        trials += go_on(folder / f"{profile}.jsonl", made, seconds / len(PROFILES), workers, profile)
    good = [one for one in trials if one.acted and one.plant.good and one.effect <= HARMLESS]
    alarms = [one for one in good if one.noticed_by]
    return {
        "schema_version": 1,
        "cases": len(good),
        "families": len({one.family for one in good}),
        "alarms": len(alarms),
        "below": certification.upper_bound(len(alarms), len(good)),
        "by_variant": {text: sum(one.variant == text for one in good) for text in variants},
        "rows": [
            {
                "kind": one.plant.kind,
                "family": one.family,
                "variant": one.variant,
                "effect": one.effect,
                "found": one.found,
            }
            for one in alarms
        ],
    }


if __name__ == "__main__":
    arguments = sys.argv[1:]
    seconds = float(arguments[1]) if len(arguments) > 1 else 3600.0
    workloads = int(arguments[2]) if len(arguments) > 2 else 200
    workers = int(arguments[3]) if len(arguments) > 3 else 2
    figures = main(Path(arguments[0]), seconds, workloads, workers, arguments[4:] or list(VARIANTS))
    print(json.dumps(strict(figures), indent=2))
