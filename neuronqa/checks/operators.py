"""One call of an operator: what the device made of its inputs against what the host makes of the same inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from neuronqa.checks.tensors import Array, Exempt, Measured, Yardstick, gauge, largest, measure, sharpen, spread
from neuronqa.domain.case import Dtype
from neuronqa.domain.observation import Deviation, Observation, Progress
from neuronqa.domain.outcome import Kind
from neuronqa.domain.policy import Thresholds

SMALLEST: Final = 2.0**-126
"""The smallest normal number of float32 and of bfloat16. Below it numbers lose digits, and a device may flush them."""
DECISIVE: Final = 0.1
"""A deviation smaller than this share of the worst is not what broke the model, however early it came."""


def compare(device: Array, same: Array, oracle: Array, dtype: Dtype, thresholds: Thresholds) -> Measured:
    """Compare one result. `same` and `oracle` are the host's in the call's own dtype and in float64.

    Where the host itself gets NaN or Inf the device must get the same; the rest is measured.
    """
    if device.shape != same.shape:
        note = f"shape {device.shape} instead of {same.shape}"
        return Measured(
            yardstick=Yardstick(name="result", count=same.size), ratio=np.inf, kind=Kind.PARITY_SHAPE, note=note
        )
    if same.dtype.kind != "f":
        return _exact(device, same)
    finite = np.isfinite(same)
    if not finite.all():
        odd = ~finite
        if not np.array_equal(device[odd], same[odd], equal_nan=True):
            note = "not the NaN or Inf that the host gets"
            stick = Yardstick(name="result", count=same.size)
            return Measured(yardstick=stick, ratio=np.inf, kind=Kind.PARITY_SCATTER, note=note)
        device, same, oracle = device[finite], same[finite], oracle[finite]
    if max(largest(device), largest(oracle)) < SMALLEST:
        return Measured(yardstick=Yardstick(name="result", count=same.size, exempt=Exempt.NOISE))
    noise, gains = spread(oracle, [same])
    stick = sharpen([gauge("result", same, oracle, noise, gains)], dtype, thresholds)["result"]
    if stick.exempt is Exempt.ZERO and np.isfinite(device).all():
        return _zero(device, same, stick, thresholds)
    return measure(device, oracle, stick)


def _zero(device: Array, same: Array, stick: Yardstick, thresholds: Thresholds) -> Measured:
    """Where the oracle is zero the device may leave what the host leaves, and no more."""
    allowed, peak = thresholds.parity_peak_ratio * largest(same), largest(device)
    if peak <= allowed:
        return Measured(yardstick=stick, error=peak, peak=peak)
    ratio = peak / allowed if allowed else np.inf
    note = f"up to {peak:.3g} where it must be zero"
    return Measured(yardstick=stick, error=peak, peak=peak, ratio=ratio, kind=Kind.PARITY_SCATTER, note=note)


def complete(search: Observation | None) -> bool:
    """Did a search compare every call of a whole step?"""
    return (
        search is not None
        and search.reached is Progress.DONE
        and search.searched > 0
        and search.unanswered == 0
        and search.failure is None
    )


def acquits(search: Observation | None) -> bool:
    """Was every call right by its own inputs, and were those what the model's own operators left? A step is then right
    by induction. The first alone says nothing of a model that computes something else on the device."""
    return search is not None and complete(search) and not search.deviations and not search.parted


def to_blame(deviations: Sequence[Deviation]) -> Deviation | None:
    """The first deviation that is not small beside the worst: what is wrong by a tolerance or two did not do what a
    thousand tolerances did."""
    worst = max((one.ratio for one in deviations), default=0.0)
    return next((one for one in deviations if one.ratio >= DECISIVE * worst), None)


def pattern(one: Deviation) -> str:
    """`aten::gelu float32`"""
    return f"{one.op} {one.dtype}".strip()


def _exact(device: Array, same: Array) -> Measured:
    stick = Yardstick(name="result", count=same.size, exact=True)
    return measure(device, same, stick)
