"""How often is a right device called wrong?

Runs popular workloads on a device without faults (profile `ideal`) and with good twins planted into a
device of real numerics, eager and compiled, fp32 and bf16, and counts every verdict that blames the device and every
check that a twin fails and the same run without it does not. `below`: the rate is below this with 95 % confidence.

    PYTHONPATH=. python tests/benchmark/false_alarms.py [workloads] [workers] [variant ...]
"""

from __future__ import annotations

import json
import sys
from typing import Any

from neuronqa import catalog as catalogs
from neuronqa.device.prepare import prepare
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Variant
from neuronqa.domain.identity import strict
from neuronqa.domain.policy import Thresholds
from neuronqa.domain.trial import HARMLESS, Trial
from neuronqa.sweep import certification

PROFILES = ("ideal", "trn2-sdk2.33")
VARIANTS = ("eager/fp32/train", "eager/bf16/train", "compile/fp32/train", "compile/bf16/train")
TWINS = frozenset({"twin-noise", "twin-reordered", "twin-tiled", "twin-identity"})


def main(workloads: int, workers: int, variants: list[str]) -> dict[str, Any]:
    chosen = certification.choose(catalogs.open("top-100k"), workloads)
    trials: list[Trial] = []
    for profile in PROFILES:
        prepared = prepare(BuildOrder(device="neuron", profile=profile))
        given = certification.assignments(chosen, [Variant.parse(text) for text in variants], "neuron", TWINS)
        for trial in certification.carry_out(given, prepared.order, Thresholds(), workers):
            trials.append(trial)
            print(f"{profile} {len(trials)}", end="\r", file=sys.stderr)
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
    workloads = int(arguments[0]) if arguments else 200
    workers = int(arguments[1]) if len(arguments) > 1 else 2
    print(json.dumps(strict(main(workloads, workers, arguments[2:] or list(VARIANTS))), indent=2))
