"""One tensor against its oracle: how far off, how far off it may be, and in what way.

Distances are root mean squares and largest absolute values over a tensor's elements, in float64. What is allowed is a
multiple of what the CPU's own runs in the case's dtype are off by, with two floors: the dtype's rounding, and the
typical relative error of the tensor's group, so that a tensor of few elements in which the CPU happened to round well
is not held to its luck.

Besides, the least squares factor from oracle to device (the gain) is held to what it is on the CPU: an error that all
elements share stands out of noise that they do not, which is what a check in bfloat16 has its power from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

import numpy as np

from neuronqa.domain.case import Dtype
from neuronqa.domain.outcome import Kind
from neuronqa.domain.policy import Thresholds

Array = np.ndarray[Any, Any]
Arrays = Mapping[str, Array]

ROUNDOFF: Final = {Dtype.FP32: 2.0**-24, Dtype.BF16: 2.0**-8}
"""Unit roundoff: half the distance from 1 to the next number."""
GAIN_FLOOR: Final = 1 / 64
"""Gains are not held to less: where elements are that exact, their root mean square is the sharper test, and a device
may round all elements of a tensor the same way (an activation from a table)."""
FEW: Final = 3.0
"""How little three runs tell of a tensor of one element: their spread is off by a factor of four once in hundreds."""
EXPLAINED: Final = 0.25
"""A class names an error when what it leaves unexplained is below this share of it."""


_SQUARES: Final = (1e-280, 1e280)


class Exempt(StrEnum):
    """Why a tensor cannot decide anything."""

    ZERO = "zero"
    """The oracle is zero everywhere, so it has no scale of its own."""
    NOISE = "noise"
    """What rounding may do to it is not small against what it is."""
    EMPTY = "empty"
    UNSTABLE = "unstable"
    """The CPU's own runs disagree about its shape, its finiteness, or about whole numbers."""
    UNREACHED = "unreached"
    """Zeros of a compiled backward for a parameter that the loss does not reach, where autograd leaves none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Yardstick:
    """What one tensor is measured by. Known from the reference alone."""

    name: str
    count: int
    exact: bool = False
    """Whole numbers and truth values: equal or not."""
    scale: float = 0.0
    cpu_error: float = 0.0
    cpu_peak: float = 0.0
    cpu_gain: float = 0.0
    """Root mean square distance of the CPU's gains from 1."""
    tolerance: float = 0.0
    peak_tolerance: float = 0.0
    gain_tolerance: float = 0.0
    alarm: float = math.inf
    """Even an exempt tensor fails when it is off by more: the allowance of a typical tensor of its group."""
    exempt: Exempt | None = None

    @property
    def group(self) -> str:
        return group_of(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How one device tensor compares. `ratio` is in tolerances: above 1 fails."""

    yardstick: Yardstick
    error: float = math.nan
    peak: float = math.nan
    ratio: float = 0.0
    gain: float = math.nan
    """Least squares factor from oracle to device."""
    kind: Kind | None = None
    note: str = ""


def group_of(name: str) -> str:
    """`output`, `loss`, `grad`, `update` or `buffer`."""
    return name.partition("/")[0]


def yardsticks(reference: Arrays, dtype: Dtype, thresholds: Thresholds) -> dict[str, Yardstick]:
    """Measure every tensor the reference holds an oracle of."""
    names = [name.removeprefix("oracle/") for name in reference if name.startswith("oracle/")]
    names = [name for name in names if not name.startswith("curve/")]
    rough = [
        gauge(
            name,
            reference[f"same/{name}"],
            reference[f"oracle/{name}"],
            reference.get(f"noise/{name}"),
            reference.get(f"gain/{name}"),
        )
        for name in names
    ]
    return sharpen(rough, dtype, thresholds)


def gauge(name: str, same: Array, oracle: Array, noise: Array | None, gains: Array | None) -> Yardstick:
    """What the reference says of one tensor, before its group has a say."""
    count = int(oracle.size)
    if count == 0:
        return Yardstick(name=name, count=0, exempt=Exempt.EMPTY)
    if oracle.dtype.kind != "f" or noise is None or gains is None:
        stable = np.array_equal(same, oracle)
        return Yardstick(name=name, count=count, exact=True, exempt=None if stable else Exempt.UNSTABLE)
    scale, error, peak = rms(oracle), rms(noise), largest(noise)
    steady = math.isfinite(scale) and math.isfinite(error) and same.shape == oracle.shape
    return Yardstick(
        name=name,
        count=count,
        scale=scale,
        cpu_error=error,
        cpu_peak=peak,
        cpu_gain=rms(gains - 1.0),
        exempt=None if steady else Exempt.UNSTABLE,
    )


def sharpen(rough: Iterable[Yardstick], dtype: Dtype, thresholds: Thresholds) -> dict[str, Yardstick]:
    """Turn the CPU's errors into tolerances, with the floors, and say which tensors are exempt."""
    groups: dict[str, list[Yardstick]] = {}
    for one in rough:
        groups.setdefault(one.group, []).append(one)
    result: dict[str, Yardstick] = {}
    for members in groups.values():
        steady = [one for one in members if one.exempt is None and one.scale > 0]
        usual = max(_median(one.cpu_error / one.scale for one in steady), ROUNDOFF[dtype])
        usual_gain = _median(one.cpu_gain for one in steady)
        allowed = [_allow(one, usual, usual_gain, thresholds) for one in members]
        scales = [one.scale for one in allowed if one.exempt is None and not one.exact]
        alarm = thresholds.parity_ratio * usual * float(np.median(scales)) if scales else math.inf
        result.update((one.name, replace(one, alarm=max(alarm, one.tolerance))) for one in allowed)
    return result


def _median(values: Iterable[float]) -> float:
    known = [value for value in values if math.isfinite(value)]
    return float(np.median(known)) if known else 0.0


def _allow(one: Yardstick, usual: float, usual_gain: float, thresholds: Thresholds) -> Yardstick:
    if one.exempt is not None or one.exact:
        return one
    floor = usual * one.scale
    luck = 1 + FEW / math.sqrt(one.count)
    tolerance = luck * thresholds.parity_ratio * max(one.cpu_error, floor)
    peak = luck * thresholds.parity_peak_ratio * max(one.cpu_peak, floor)
    gain = max(GAIN_FLOOR, thresholds.parity_gain_ratio * max(one.cpu_gain, usual_gain))
    exempt = None
    if one.scale == 0:
        exempt = Exempt.ZERO
    elif min(tolerance, gain * one.scale) > thresholds.parity_power * one.scale:
        exempt = Exempt.NOISE
    return replace(one, tolerance=tolerance, peak_tolerance=peak, gain_tolerance=gain, exempt=exempt)


def measure(device: Array, oracle: Array, yardstick: Yardstick) -> Measured:
    """Compare one tensor of the right shape."""
    if device.shape != oracle.shape:
        note = f"shape {device.shape} instead of {oracle.shape}"
        return Measured(yardstick=yardstick, ratio=math.inf, kind=Kind.PARITY_SHAPE, note=note)
    if yardstick.exempt in (Exempt.EMPTY, Exempt.UNSTABLE):
        return Measured(yardstick=yardstick)
    if yardstick.exact:
        return _exact(device, oracle, yardstick)
    found = np.asarray(device, dtype=np.float64).ravel()
    if not np.isfinite(found).all():
        return _non_finite(found, yardstick)
    return _inexact(found, np.asarray(oracle, dtype=np.float64).ravel(), yardstick)


def _exact(device: Array, oracle: Array, yardstick: Yardstick) -> Measured:
    wrong = int(np.count_nonzero(device != oracle))
    if not wrong:
        return Measured(yardstick=yardstick, error=0.0, peak=0.0)
    kind = Kind.PARITY_ZERO if not device.any() else Kind.PARITY_SCATTER
    note = f"{wrong} of {oracle.size} whole numbers differ"
    return Measured(yardstick=yardstick, error=wrong / oracle.size, ratio=math.inf, kind=kind, note=note)


def _non_finite(found: Array, yardstick: Yardstick) -> Measured:
    nan = int(np.count_nonzero(np.isnan(found)))
    inf = int(np.count_nonzero(np.isinf(found)))
    kind = Kind.PARITY_NAN if nan else Kind.PARITY_INF
    note = f"{nan} NaN and {inf} Inf among {found.size} elements, where the oracle has none"
    return Measured(yardstick=yardstick, ratio=math.inf, kind=kind, note=note)


def _inexact(found: Array, oracle: Array, yardstick: Yardstick) -> Measured:
    off = found - oracle
    error, peak = rms(off), largest(off)
    if yardstick.exempt is not None:
        ratio = error / yardstick.alarm if yardstick.alarm > 0 else 0.0
        kind = Kind.PARITY_SCATTER if ratio > 1 else None
        note = "beyond even what a typical tensor of its group may be off by" if kind else ""
        return Measured(yardstick=yardstick, error=error, peak=peak, ratio=ratio, kind=kind, note=note)
    # A step's oracle is the device's own, which may be larger or smaller than the CPU's that the tolerance is made for.
    size = rms(oracle) / yardstick.scale
    gain = least_squares(found, oracle)
    shared = 0.0 if math.isnan(gain) else abs(gain - 1.0) * size / yardstick.gain_tolerance
    larger = max(1.0, size)
    ratio = max(error / yardstick.tolerance / larger, peak / yardstick.peak_tolerance / larger, shared / larger)
    if ratio <= 1:
        return Measured(yardstick=yardstick, error=error, peak=peak, ratio=ratio, gain=gain)
    kind = classify(found, oracle, gain, error)
    return Measured(yardstick=yardstick, error=error, peak=peak, ratio=ratio, gain=gain, kind=kind)


def classify(found: Array, oracle: Array, gain: float, error: float) -> Kind:
    """Name the way `found` is wrong: the simplest change of the oracle that leaves little of the error unexplained."""
    limit = EXPLAINED * error
    if rms(found) <= limit:
        return Kind.PARITY_ZERO
    if rms(found + oracle) <= limit:
        return Kind.PARITY_SIGN
    if rms(found - gain * oracle) <= limit:
        return Kind.PARITY_SCALE
    if found.size > 1 and rms(found - oracle - float(np.mean(found - oracle))) <= limit:
        return Kind.PARITY_OFFSET
    return Kind.PARITY_SCATTER


def least_squares(found: Array, oracle: Array) -> float:
    """The factor by which `oracle` comes closest to `found`; NaN for an oracle of zeros."""
    top = largest(oracle)
    if top == 0 or not math.isfinite(top):
        return math.nan
    unit = oracle / top
    return float((found / top) @ unit) / float(unit @ unit)


def spread(truth: Array, runs: Sequence[Array | None]) -> tuple[Array, Array]:
    """How far `runs` are from `truth`: root mean square over the runs, element by element, and the gain of each run.

    NaN where a run lacks the tensor or has it in another shape.
    """
    same = [run for run in runs if run is not None and run.shape == truth.shape]
    if len(same) < len(runs):
        return np.full(truth.shape, np.nan, dtype=np.float32), np.full(len(runs), np.nan)
    wide = [np.asarray(run, dtype=np.float64) for run in same]
    with np.errstate(all="ignore"):
        squares = sum(np.square(run - truth) for run in wide)
        gains = [least_squares(run.ravel(), truth.ravel()) for run in wide]
        return np.sqrt(squares / len(wide)).astype(np.float32), np.asarray(gains)


def rms(array: Array) -> float:
    """Root mean square; by way of the largest element where squares would overflow or vanish."""
    flat = np.asarray(array, dtype=np.float64).ravel()
    square = float(flat @ flat)
    if _SQUARES[0] < square < _SQUARES[1]:
        return math.sqrt(square / flat.size)
    top = largest(flat)
    if top == 0 or not math.isfinite(top):
        return top
    small = flat / top
    return top * math.sqrt(float(small @ small) / flat.size)


def largest(array: Array) -> float:
    return float(np.max(np.abs(array))) if array.size else 0.0
