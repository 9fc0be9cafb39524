"""The same step once more from the same start: does it give the same?"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from torch import nn

from neuronqa.checks.tensors import Array, rms
from neuronqa.domain.case import Phase
from neuronqa.worker.exchange import Arrays
from neuronqa.worker.executing import execute
from neuronqa.worker.training import Marks, Notes, Subject, seed_everything

REPEATED: Final = ("output/", "loss", "grad/", "token/")


def repeat(subject: Subject, phase: Phase, first: Notes, restore: Callable[[nn.Module], None]) -> Arrays:
    """Run one step again; return `again/NAME`, the distance from the first time, for every tensor that differs.

    A tensor that is gone, has another shape, or is not a number has no distance: infinity stands for it.
    """
    again = Notes(parameter_names=first.parameter_names)
    restore(subject.module)
    seed_everything()
    execute(subject, phase, 1, again, Marks(lambda _: None))
    distances: Arrays = {}
    for name, before in first.arrays.items():
        after = again.arrays.get(name)
        if name.startswith(REPEATED) and (after is None or not np.array_equal(before, after, equal_nan=True)):
            distances[f"again/{name}"] = np.asarray(_distance(before, after))
    return distances


def _distance(before: Array, after: Array | None) -> float:
    if after is None or before.shape != after.shape or before.dtype.kind != "f":
        return math.inf
    found = rms(np.asarray(before, dtype=np.float64) - after)
    return found if math.isfinite(found) else math.inf
