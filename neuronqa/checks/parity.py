"""Are the numbers right? Device, CPU in the same dtype and float64 oracle, tensor by tensor.

Each tensor is held to its own scale, so that no large tensor hides a small one. A parameter's first step is judged from
the gradient the device itself computed: gradients are compared for themselves, and a step that follows from a slightly
different gradient may differ by the whole learning rate (AdamW's first step is nearly the gradient's sign).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from neuronqa.checks.finding import blocked, finding, no_power
from neuronqa.checks.tensors import (
    ROUNDOFF,
    Array,
    Arrays,
    Measured,
    Yardstick,
    gauge,
    group_of,
    measure,
    sharpen,
    spread,
    yardsticks,
)
from neuronqa.domain.case import Dtype, Phase, Variant
from neuronqa.domain.finding import Finding
from neuronqa.domain.observation import Observation
from neuronqa.domain.optimizer import ADAMW
from neuronqa.domain.outcome import Check, Kind
from neuronqa.domain.policy import Thresholds

SHOWN: Final = 10
NAMED: Final = 40
GROUPS: Final = ("output", "loss", "grad", "update", "buffer")
"""In the order in which a fault reaches them."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """What the reference child left, measured once."""

    observation: Observation
    arrays: Arrays
    weights: Arrays
    """`param/NAME` before the first step."""
    yardsticks: Mapping[str, Yardstick]

    @classmethod
    def of(
        cls, observation: Observation, arrays: Arrays, weights: Arrays, dtype: Dtype, thresholds: Thresholds
    ) -> Reference:
        measured = dict(yardsticks(arrays, dtype, thresholds))
        names = [name for name in observation.parameter_names if f"same/param/{name}" in arrays]
        steps = [_step_yardstick(name, arrays, weights, ROUNDOFF[dtype]) for name in names]
        measured.update(sharpen(steps, dtype, thresholds))
        return cls(observation=observation, arrays=arrays, weights=weights, yardsticks=measured)


def judge(
    reference: Reference,
    device: Observation | None,
    arrays: Arrays,
    stopped: Check | None,
    variant: Variant,
    thresholds: Thresholds,
) -> Finding:
    """A tensor that was seen to be wrong counts even if the run stopped later; a pass needs every tensor."""
    if device is None or not arrays:
        return blocked(Check.PARITY, stopped or Check.RUN)
    measured = [*_structure(reference, device, arrays, stopped), *_compare(reference, device, arrays)]
    wrong = [one for one in measured if one.kind is not None]
    if wrong:
        return _wrong(reference, wrong, measured)
    if stopped is not None:
        return blocked(Check.PARITY, stopped)
    return _power(reference, measured, variant, thresholds) or _right(measured)


def _structure(reference: Reference, device: Observation, arrays: Arrays, stopped: Check | None) -> Iterable[Measured]:
    """Tensors only one side has, and tensors of another dtype."""
    expected = {name.removeprefix("same/") for name in reference.arrays if name.startswith("same/")}
    present = {name for name in arrays if not name.startswith("curve/")}
    missing = expected - present if stopped is None else set()
    for name in sorted(missing | (present - expected)):
        side = "missing on the device" if name in missing else "only on the device"
        kind = Kind.PARITY_STRUCTURE if group_of(name) in ("output", "buffer") else Kind.PARITY_MISSING
        yield Measured(yardstick=Yardstick(name=name, count=0), ratio=np.inf, kind=kind, note=side)
    for name in sorted(expected & present):
        was, now = reference.observation.dtypes[f"same/{name}"], device.dtypes.get(name, "")
        if was != now:
            one = reference.yardsticks.get(name) or Yardstick(name=name, count=0)
            yield Measured(yardstick=one, ratio=np.inf, kind=Kind.PARITY_DTYPE, note=f"{now} instead of {was}")


def _compare(reference: Reference, device: Observation, arrays: Arrays) -> Iterable[Measured]:
    for name, yardstick in reference.yardsticks.items():
        if yardstick.group == "update":
            parameter = name.removeprefix("update/")
            if f"param/{parameter}" in arrays:
                yield _step(parameter, reference, arrays, yardstick)
        elif name in arrays and device.dtypes.get(name) == reference.observation.dtypes[f"same/{name}"]:
            yield measure(arrays[name], reference.arrays[f"oracle/{name}"], yardstick)


def _step_yardstick(name: str, arrays: Arrays, weights: Arrays, roundoff: float) -> Yardstick:
    """How far the CPU's own step is from the step its own gradient asks for in float64, or how far rounding the
    parameter alone may put it, for a parameter of few elements may round well by luck."""
    start = weights[f"param/{name}"]
    asked = adamw_step(start, arrays.get(f"same/grad/{name}"))
    took = np.asarray(arrays[f"same/param/{name}"], dtype=np.float64) - start
    noise, gains = spread(asked, [took])
    return gauge(f"update/{name}", took, asked, np.maximum(noise, roundoff * np.abs(start)), gains)


def _step(name: str, reference: Reference, arrays: Arrays, yardstick: Yardstick) -> Measured:
    start = reference.weights[f"param/{name}"]
    after = arrays[f"param/{name}"]
    gradient = arrays.get(f"grad/{name}")
    if after.shape != start.shape or (gradient is not None and gradient.shape != start.shape):
        return measure(after, start, yardstick)
    asked = adamw_step(start, gradient)
    return measure(np.asarray(after, dtype=np.float64) - start, asked, yardstick)


def adamw_step(start: Array, gradient: Array | None) -> Array:
    """What the first step of AdamW adds to a parameter, in float64; nothing where there is no gradient.

    After one step both moments' bias corrections cancel: the step is lr * g / (|g| + eps), after the decay
    (torch.optim.AdamW, "Decoupled Weight Decay Regularization").
    """
    if gradient is None:
        return np.zeros(start.shape, dtype=np.float64)
    slope = np.asarray(gradient, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        return -ADAMW.lr * (ADAMW.weight_decay * start + slope / (np.abs(slope) + ADAMW.eps))


def _wrong(reference: Reference, wrong: list[Measured], measured: list[Measured]) -> Finding:
    first = min(wrong, key=lambda one: _rank(reference, one))
    worst = max(one.ratio for one in wrong)
    name = first.yardstick.name
    words = f"{len(wrong)} of {len(measured)} tensors are wrong; first {name}: {_words(first)}"
    return finding(
        Check.PARITY,
        first.kind or Kind.PARITY_SCATTER,
        words,
        detail=first.yardstick.group,
        measure=worst,
        first=_facts(first),
        wrong=[_facts(one) for one in sorted(wrong, key=lambda one: -one.ratio)[:SHOWN]],
        wrong_by_group=dict(Counter(one.yardstick.group for one in wrong)),
        **_counts(measured),
    )


_FATAL: Final = (
    Kind.PARITY_STRUCTURE,
    Kind.PARITY_MISSING,
    Kind.PARITY_SHAPE,
    Kind.PARITY_DTYPE,
    Kind.PARITY_NAN,
    Kind.PARITY_INF,
)


def _rank(reference: Reference, one: Measured) -> tuple[int, int, int]:
    """What speaks for the whole: the gravest class, then the earliest tensor. Backward runs from the last parameter."""
    grave = _FATAL.index(one.kind) if one.kind in _FATAL else len(_FATAL)
    group, _, name = one.yardstick.name.partition("/")
    place = GROUPS.index(group) if group in GROUPS else len(GROUPS)
    names = reference.observation.parameter_names
    order = names.index(name) if name in names else 0
    exempt = 0 if one.yardstick.exempt is None else 1
    return grave, 2 * place + exempt, -order if group == "grad" else order


def _power(reference: Reference, measured: list[Measured], variant: Variant, thresholds: Thresholds) -> Finding | None:
    """Say why a clean comparison proves nothing, if it does not."""
    deciding = Counter(one.yardstick.group for one in measured if one.yardstick.exempt is None)
    facts = _counts(measured)
    if reference.observation.no_oracle:
        why = reference.observation.no_oracle
        return no_power(Check.PARITY, f"there is no float64 run to compare with: {why}", detail="no oracle", **facts)
    if not any(name.startswith("oracle/output/") for name in reference.arrays):
        return no_power(Check.PARITY, "the model returned no tensor to compare", detail="no outputs", **facts)
    if not deciding["output"]:
        return no_power(Check.PARITY, "every output is exempt, so a wrong one could pass", detail="outputs", **facts)
    if variant.phase is Phase.TRAIN:
        gradients = sum(one.yardstick.group == "grad" for one in measured)
        if deciding["grad"] <= thresholds.parity_coverage * gradients:
            words = f"only {deciding['grad']} of {gradients} gradient tensors can decide anything"
            return no_power(Check.PARITY, words, detail="gradients", **facts)
        if not deciding["loss"]:
            return no_power(Check.PARITY, "the loss is exempt, so a wrong one could pass", detail="loss", **facts)
    return None


def _right(measured: list[Measured]) -> Finding:
    worst = max(measured, key=lambda one: one.ratio)
    deciding = sum(one.yardstick.exempt is None for one in measured)
    words = (
        f"{deciding} tensors within tolerance, {len(measured) - deciding} exempt; "
        f"closest to it {worst.yardstick.name} at {worst.ratio:.2g} of its tolerance"
    )
    return finding(Check.PARITY, Kind.PARITY_PASS, words, measure=worst.ratio, worst=_facts(worst), **_counts(measured))


def _words(one: Measured) -> str:
    if one.note:
        return one.note
    stick = one.yardstick
    relative = one.error / stick.scale if stick.scale else float("inf")
    gain = f", {one.gain:.3g} x the oracle" if one.kind is Kind.PARITY_SCALE else ""
    return (
        f"off by {relative:.2g} of its scale{gain}, {one.ratio:.3g} x the tolerance "
        f"(CPU in the same dtype: {stick.cpu_error / stick.scale if stick.scale else 0:.2g})"
    )


def _facts(one: Measured) -> dict[str, Any]:
    stick = one.yardstick
    return {
        "tensor": stick.name,
        "kind": one.kind.value if one.kind else "",
        "elements": stick.count,
        "ratio": one.ratio,
        "error": one.error,
        "peak": one.peak,
        "gain": one.gain,
        "scale": stick.scale,
        "cpu_error": stick.cpu_error,
        "tolerance": stick.tolerance,
        "peak_tolerance": stick.peak_tolerance,
        "gain_tolerance": stick.gain_tolerance,
        "exempt": stick.exempt.value if stick.exempt else "",
        "note": one.note,
    }


def _counts(measured: list[Measured]) -> dict[str, Any]:
    exempt = [one.yardstick for one in measured if one.yardstick.exempt is not None]
    return {
        "compared": len(measured),
        "compared_by_group": dict(Counter(one.yardstick.group for one in measured)),
        "exempt": len(exempt),
        "exempt_by_reason": dict(Counter(one.exempt.value for one in exempt if one.exempt)),
        "exempt_tensors": sorted(one.name for one in exempt)[:NAMED],
    }
