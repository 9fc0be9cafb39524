"""How far a planted fault moved a run: against the same device without it, in the tolerances of the reference.

Not how parity sees it: parity never knows the run without the fault. So whether a fault takes effect and whether it is
noticed are two questions with two answers.
"""

from __future__ import annotations

import math

import numpy as np

from neuronqa.checks.seen import Reference
from neuronqa.checks.steps import adamw_step
from neuronqa.checks.tensors import Array, Arrays, Yardstick
from neuronqa.checks.training import signals
from neuronqa.domain.case import Dtype
from neuronqa.domain.policy import Thresholds


def of_tensors(reference: Reference, plain: Arrays, faulty: Arrays) -> float:
    """The largest distance over deciding tensors; infinite where one is gone, odd in shape, or not finite."""
    deciding = {name: one for name, one in reference.yardsticks.items() if one.exempt is None}
    moved = [_moved(plain[name], faulty.get(name), one) for name, one in deciding.items() if name in plain]
    steps = [
        _moved(
            _residual(name.removeprefix("update/"), reference, plain),
            _residual(name.removeprefix("update/"), reference, faulty),
            one,
        )
        for name, one in deciding.items()
        if one.group == "update"
    ]
    return max([*moved, *steps], default=0.0)


def _residual(name: str, reference: Reference, arrays: Arrays) -> Array | None:
    """How far a parameter's step is from the one its own gradient asks for: two runs' steps differ by what their
    gradients differ by, which AdamW magnifies, and that is no effect on the step."""
    after, start = arrays.get(f"param/{name}"), reference.weights[f"param/{name}"]
    if after is None or after.shape != start.shape:
        return None
    return np.asarray(after, dtype=np.float64) - start - adamw_step(start, arrays.get(f"grad/{name}"))


def of_curves(reference: Reference, plain: Arrays, faulty: Arrays, dtype: Dtype, thresholds: Thresholds) -> float:
    """The largest distance of loss or norms, in envelope widths."""
    pairs = zip(
        signals(reference, plain, dtype, thresholds), signals(reference, faulty, dtype, thresholds), strict=True
    )
    return max((_curve(one.device, other.device, one.width) for one, other in pairs), default=0.0)


def _curve(plain: Array, faulty: Array, width: Array) -> float:
    steps = min(plain.size, faulty.size)
    if not np.isfinite(faulty[:steps]).all():
        return math.inf
    return float((np.abs(faulty[:steps] - plain[:steps]) / width[:steps]).max(initial=0.0))


def _moved(plain: Array | None, faulty: Array | None, one: Yardstick) -> float:
    if plain is None or faulty is None or faulty.shape != plain.shape:
        return math.inf
    if one.exact:
        return 0.0 if np.array_equal(plain, faulty) else math.inf
    off = np.abs(np.asarray(faulty, dtype=np.float64) - plain)
    if not np.isfinite(off).all():
        return math.inf
    return max(math.sqrt(float(np.mean(off * off))) / one.tolerance, float(off.max(initial=0.0)) / one.peak_tolerance)
