"""How many corrupted gradients does parity notice, and how many the check the field uses?

For every gradient tensor of ten small families: replaced by zeros, by its negative, by a shuffle of itself, and by
itself times 1.5. `ours`: share of the non-exempt tensors in which it is noticed. `field`: the share that
`torch._dynamo.utils.same` at the tolerance of Hugging Face training (1e-2) notices, with the same float64 reference.

    PYTHONPATH=. python tests/benchmark/gradient_power.py [family ...]
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch._dynamo.utils import same

from neuronqa.checks.seen import Reference
from neuronqa.checks.tensors import Array, measure
from neuronqa.domain.case import Variant
from neuronqa.domain.observation import WEIGHT_FILE
from neuronqa.domain.policy import Thresholds
from neuronqa.worker.exchange import read_arrays, read_observation, read_tensors
from tests.integration.roles.families import FAMILIES
from tests.integration.roles.played import family

FIELD_TOLERANCE = 1e-2
SHUFFLE = np.random.default_rng(0)
CORRUPTIONS: dict[str, Callable[[Array], Array]] = {
    "zero": np.zeros_like,
    "negative": np.negative,
    "shuffle": lambda array: SHUFFLE.permutation(array.ravel()).reshape(array.shape),
    "times 1.5": lambda array: array * 1.5,
}


def main(names: list[str]) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "families": names,
        **{
            variant: _totals([_family(name, variant) for name in names])
            for variant in ("eager/fp32/train", "eager/bf16/train")
        },
    }


def _family(name: str, variant: str) -> Counter[str]:
    with tempfile.TemporaryDirectory() as folder:
        stage = family(Path(folder), name, variant)
        stage.record()
        observation, arrays = read_observation(stage.reference), read_tensors(stage.reference)
        weights = read_arrays(stage.reference / WEIGHT_FILE)
    assert observation is not None
    reference = Reference.of(observation, arrays, weights, Variant.parse(variant).dtype, Thresholds())
    counts: Counter[str] = Counter()
    for parameter in observation.parameter_names:
        key = f"grad/{parameter}"
        if f"same/{key}" in arrays:
            _tensor(arrays[f"same/{key}"], arrays[f"oracle/{key}"], reference.yardsticks[key], counts)
    return counts


def _tensor(right: Array, oracle: Array, yardstick: Any, counts: Counter[str]) -> None:
    counts["tensors"] += 1
    counts["exempt"] += yardstick.exempt is not None
    for name, corrupt in CORRUPTIONS.items():
        wrong = corrupt(right)
        if np.array_equal(wrong, right):
            continue  # A shuffle of one element, or of equal ones, is no corruption.
        counts[f"{name}: planted"] += 1
        counts[f"{name}: field"] += not _field_accepts(right, wrong, oracle)
        if yardstick.exempt is None:
            counts[f"{name}: decidable"] += 1
            counts[f"{name}: ours"] += measure(wrong, oracle, yardstick).kind is not None


def _field_accepts(right: Array, wrong: Array, oracle: Array) -> bool:
    ref, res, exact = (torch.from_numpy(np.ascontiguousarray(array)) for array in (right, wrong, oracle))
    return bool(same(ref, res, exact, tol=FIELD_TOLERANCE, equal_nan=True, log_error=lambda *_: None))


def _totals(counted: list[Counter[str]]) -> dict[str, Any]:
    total = sum(counted, Counter())
    result: dict[str, Any] = {"tensors": total["tensors"], "exempt": total["exempt"]}
    for name in CORRUPTIONS:
        planted, decidable = total[f"{name}: planted"], total[f"{name}: decidable"]
        result[name] = {
            "planted": planted,
            "decidable": decidable,
            "ours": round(total[f"{name}: ours"] / decidable, 4),
            "ours_of_all": round(total[f"{name}: ours"] / planted, 4),
            "field": round(total[f"{name}: field"] / planted, 4),
        }
    return result


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(main(sys.argv[1:] or list(FAMILIES)), indent=2))
