"""Does it train as it does on the CPU? Loss, gradient norm and update norm against an envelope of rounding.

The envelope is what perturbations of one unit in the last place do to the CPU's own curves. Norms are taken over the
parameters whose first gradient is not noise: AdamW turns a noise gradient into a step of full length in any direction.
A loss in bfloat16 may fall by less than its envelope is wide; then the norms decide, if they can.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from neuronqa.checks import operators
from neuronqa.checks.finding import blocked, finding, no_power
from neuronqa.checks.seen import Reference, Seen
from neuronqa.checks.tensors import ROUNDOFF, Array, Arrays
from neuronqa.domain.case import Dtype
from neuronqa.domain.finding import Finding
from neuronqa.domain.outcome import Check, Kind, Outcome
from neuronqa.domain.policy import Thresholds

ANSWERS: Final = Check.TRAIN
BOTH: Final = 2.0
"""The CPU's loss and the device's are each off by a rounding."""
LEARNT: Final = 0.1
"""A loss that fell by less than this share of what it fell by on the CPU did not fall."""


@dataclass(frozen=True)
class Signal:
    """One curve of the device beside the CPU's, and how far apart they may be at each step."""

    name: str
    kind: Kind
    device: Array
    cpu: Array
    width: Array

    @property
    def ratios(self) -> Array:
        """Distance at each step in envelope widths."""
        steps = self.device.size
        distance: Array = np.abs(self.device - self.cpu[:steps]) / self.width[:steps]
        return distance

    @property
    def worst(self) -> float:
        """The largest of the ratios; 0 where no step got so far."""
        return float(self.ratios.max(initial=0.0))

    @property
    def leaves(self) -> int | None:
        """The first step outside the envelope."""
        outside = np.flatnonzero(~(self.ratios <= 1))
        return int(outside[0]) if outside.size else None


def judge(seen: Seen) -> Finding:
    """A curve that was seen to leave counts even if the run stopped later; a pass needs every step."""
    stopped, loss = seen.stopped, seen.arrays.get("curve/loss")
    if loss is None or (not loss.size and stopped is not None):
        return blocked(Check.TRAIN, stopped or Check.RUN)
    baseline = _baseline(seen)
    if baseline is not None:
        return baseline
    curves = signals(seen.reference, seen.arrays, seen.variant.dtype, seen.thresholds)
    found = _non_finite(curves) or _by_shape(curves[0]) or _by_first(curves)
    if found is not None:
        return _blamed(seen, found)
    if stopped is not None:
        return blocked(Check.TRAIN, stopped)
    if loss.size < curves[0].cpu.size:
        return no_power(Check.TRAIN, f"{loss.size} of {curves[0].cpu.size} steps were taken", detail="steps")
    worst = max(signal.worst for signal in curves)
    words = f"{loss.size} steps inside the envelope, at most {worst:.2g} of its width from the CPU's curve"
    if _hidden(curves[0]):
        words = f"{words}; by gradient and update norms, for rounding hides how the loss falls"
    return finding(Check.TRAIN, Kind.TRAIN_PASS, words, measure=worst, **_curves(curves))


def _blamed(seen: Seen, found: Finding) -> Finding:
    """Name the operator that a search found to blame."""
    blamed = operators.to_blame(seen.search.deviations) if seen.search else None
    if blamed is None:
        return found
    name = operators.pattern(blamed)
    words = f"{found.evidence['words']}; {name} is wrong, first in {blamed.progress.value}"
    return replace(found, outcome=Outcome.of(found.outcome.kind, name), evidence={**found.evidence, "words": words})


_SIGNALS: Final = (
    ("loss", Kind.TRAIN_DIVERGED),
    ("gradient", Kind.TRAIN_GRADIENT_NORM),
    ("update", Kind.TRAIN_UPDATE_NORM),
)
"""In the order in which a step computes them."""


def _baseline(seen: Seen) -> Finding | None:
    """Say why the CPU's own curve is no measure, if it is not."""
    curves = seen.reference.arrays
    loss = curves["curve/loss"]
    if loss.shape[1] < 2:
        return no_power(Check.TRAIN, "one step shows no training", detail="steps")
    for name, _ in _SIGNALS:
        if not np.isfinite(curves[f"curve/{name}"]).all():
            return _no_baseline(f"the CPU's own {name} becomes NaN or Inf", "non-finite")
    signal, *norms = signals(seen.reference, seen.arrays, seen.variant.dtype, seen.thresholds)
    fall = _fall(signal.cpu)
    if fall <= BOTH * ROUNDOFF[seen.variant.dtype] * float(np.abs(signal.cpu).max()):
        return _no_baseline(
            f"the CPU's own loss does not fall: {fall:.3g} in {loss.shape[1]} steps", "loss does not fall"
        )
    if not _hidden(signal) or all(_decides(one, seen.thresholds) for one in norms):
        return None
    words = f"the CPU's own loss falls by {fall:.3g}, which rounding hides, and rounding hides its norms as well"
    return _no_baseline(words, "loss falls within rounding")


def _hidden(loss: Signal) -> bool:
    """Is the envelope so wide that a loss which stays where it began would be within it?"""
    return _fall(loss.cpu) <= 2 * float(loss.width.max())


def _decides(norm: Signal, thresholds: Thresholds) -> bool:
    """Would a norm show that training goes another way? A norm averages over elements, which a loss does not."""
    return bool((norm.width <= thresholds.parity_power * norm.cpu).all())


def _no_baseline(words: str, detail: str) -> Finding:
    return finding(Check.TRAIN, Kind.INCONCLUSIVE_NO_BASELINE, words, detail=detail)


def signals(reference: Reference, arrays: Arrays, dtype: Dtype, thresholds: Thresholds) -> list[Signal]:
    """Loss, gradient norm and update norm of a device beside the CPU's."""
    return [_signal(reference, arrays, name, kind, dtype, thresholds) for name, kind in _SIGNALS]


def _signal(
    reference: Reference, arrays: Arrays, name: str, kind: Kind, dtype: Dtype, thresholds: Thresholds
) -> Signal:
    curves = reference.arrays
    device, runs, exact = arrays[f"curve/{name}"], curves[f"curve/{name}"], curves.get(f"oracle/curve/{name}")
    if name != "loss":
        columns = _deciding(reference)
        device, runs = _norm(device, columns), _norm(runs, columns)
        exact = None if exact is None else _norm(exact, columns)
    centre = runs.mean(axis=0)
    width = envelope(runs, exact, _floor(name, centre, dtype, thresholds), thresholds.train_envelope)
    return Signal(name, kind, device, centre, width)


def _norm(table: Array, columns: list[int]) -> Array:
    norm: Array = np.sqrt(np.square(table[..., columns]).sum(axis=-1))
    return norm


def _floor(name: str, centre: Array, dtype: Dtype, thresholds: Thresholds) -> Array:
    """A loss is one number in the case's dtype, so it is never better than its rounding; a norm averages."""
    share = thresholds.train_floor
    if name != "loss":
        return share * np.abs(centre)
    return np.maximum(share * _fall(centre), BOTH * ROUNDOFF[dtype] * np.abs(centre))


def _fall(loss: Array) -> float:
    return max(0.0, float(loss[0] - loss[1:].min()))


def _deciding(reference: Reference) -> list[int]:
    """Columns of the parameters whose gradient is not exempt."""
    sticks = reference.yardsticks
    names = reference.observation.parameter_names
    keep = [i for i, name in enumerate(names) if (one := sticks.get(f"grad/{name}")) is not None and one.exempt is None]
    return keep or list(range(len(names)))


def envelope(runs: Array, exact: Array | None, floor: Array, factor: float) -> Array:
    """Allowed distance from the mean of `runs` (runs x steps) at each step, never below `floor`.

    Rounding shows in two ways: the runs differ from one another, and all of them from float64 (`exact`), by what a sum
    in the same order loses each time. An arithmetic as good as the CPU's may do either. Both are pooled over a step and
    those before it, and the width never shrinks: trajectories that have parted do not meet again for a reason.
    """
    centre = runs.mean(axis=0)
    squares = np.square(runs - centre).sum(axis=0) / max(1, len(runs) - 1)
    if exact is not None and exact.shape == centre.shape and np.isfinite(exact).all():
        squares = squares + np.square(centre - exact)
    spread = np.sqrt(np.cumsum(squares) / np.arange(1, squares.size + 1))
    least = np.finfo(np.float64).tiny  # Curves that are zero throughout are equal, not incomparable.
    width: Array = np.maximum.accumulate(np.maximum(factor * spread, np.maximum(floor, least)))
    return width


def _non_finite(signals: list[Signal]) -> Finding | None:
    for signal in signals:
        bad = np.flatnonzero(~np.isfinite(signal.device))
        if bad.size:
            step = int(bad[0])
            words = f"{signal.name} is NaN or Inf at step {step}, where the CPU's is {signal.cpu[step]:.4g}"
            return finding(Check.TRAIN, Kind.TRAIN_NON_FINITE, words, detail=signal.name, step=step, **_curves(signals))
    return None


def _by_shape(loss: Signal) -> Finding | None:
    """A loss that does not fall, or rises, says more than the step at which it first differed."""
    if loss.leaves is None or loss.device.size < loss.cpu.size:
        return None
    fall = _fall(loss.cpu)
    device = float(loss.device[0] - loss.device[1:].min())
    end = float(loss.device[-1] - loss.device[0])
    if end > fall:
        kind, words = Kind.TRAIN_DIVERGED, f"the loss rose by {end:.3g} where the CPU's fell by {fall:.3g}"
    elif device < LEARNT * fall:
        kind, words = Kind.TRAIN_PLATEAU, f"the loss fell by {device:.3g} where the CPU's fell by {fall:.3g}"
    else:
        return None
    return _left(kind, words, loss, [loss])


def _by_first(signals: list[Signal]) -> Finding | None:
    leaving = [signal for signal in signals if signal.leaves is not None]
    if not leaving:
        return None
    first = min(leaving, key=lambda signal: signal.leaves or 0)
    step = first.leaves or 0
    words = f"{first.name} is {first.device[step]:.6g} where the CPU's is {first.cpu[step]:.6g}"
    return _left(first.kind, words, first, signals)


def _left(kind: Kind, words: str, signal: Signal, signals: list[Signal]) -> Finding:
    step = signal.leaves or 0
    width = float(signal.width[step])
    return finding(
        Check.TRAIN,
        kind,
        f"{words}; {signal.name} leaves the envelope at step {step} (width {width:.3g})",
        measure=max(one.worst for one in signals),
        step=step,
        **_curves(signals),
    )


def _curves(signals: list[Signal]) -> dict[str, Any]:
    return {
        "curves": {
            signal.name: {
                "device": signal.device.tolist(),
                "cpu": signal.cpu.tolist(),
                "width": signal.width.tolist(),
            }
            for signal in signals
        }
    }
