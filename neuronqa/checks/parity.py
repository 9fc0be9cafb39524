"""Are the numbers right? Device, CPU in the same dtype and float64 oracle, tensor by tensor.

Each tensor is held to its own scale, so that no large tensor hides a small one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

import numpy as np

from neuronqa.checks import choices, operators, second, steps
from neuronqa.checks.finding import blocked, finding, no_power
from neuronqa.checks.seen import Reference, Seen
from neuronqa.checks.tensors import Arrays, Exempt, Measured, Yardstick, group_of, measure, rms
from neuronqa.domain.case import Mode, Phase
from neuronqa.domain.finding import Finding
from neuronqa.domain.identity import strict
from neuronqa.domain.observation import Deviation, Observation
from neuronqa.domain.outcome import Check, Kind, Outcome

ANSWERS: Final = Check.PARITY
NOT_COMPARED: Final = ("curve/", "margin/", "again/")
SHOWN: Final = 10
NAMED: Final = 40
BINS: Final = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
"""Edges of the histogram of errors, in tolerances."""
GROUPS: Final = ("output", "token", "loss", "grad", "update", "buffer")
"""In the order in which a fault reaches them."""


def judge(seen: Seen) -> Finding:
    """Judge the tensors; say beside it how another device compares, where one was recorded."""
    found = _judged(seen)
    if seen.second is None or not seen.arrays:
        return found
    compared = strict(second.compare(seen.reference, seen.arrays, seen.second))
    return replace(found, evidence={**found.evidence, "second_reference": compared})


def _judged(seen: Seen) -> Finding:
    """A tensor that was seen to be wrong counts even if the run stopped later; a pass needs every tensor.

    Where tensors are wrong, or too noisy to tell, and the step was searched operator by operator, the search decides:
    an operator that is wrong is the cause; a whole eager step is right of which every operator is right, and given what
    the model's own operators left, however far rounding took it (a router that chose another expert, a network on the
    edge of chaos).
    """
    reference, device, arrays = seen.reference, seen.device, seen.arrays
    if device is None or not arrays:
        return blocked(Check.PARITY, seen.stopped or Check.RUN)
    measured = [*_structure(seen, device), *_compare(reference, device, arrays)]
    wrong = [one for one in measured if one.kind is not None]
    unsteady = _unsteady(seen)
    if not wrong and not unsteady and seen.stopped is not None:
        return blocked(Check.PARITY, seen.stopped)
    weak = None if wrong else _power(seen, measured)
    if not wrong and not unsteady and weak is None:
        return _right(measured)
    if seen.search is not None and seen.search.deviations:
        return _caused(seen, wrong, measured, seen.search.deviations)
    if unsteady:
        return _flaky(unsteady, wrong, measured)
    if seen.stopped is None and seen.variant.mode is Mode.EAGER and operators.acquits(seen.search):
        by_operator = _by_operator(seen, wrong, measured)
        if by_operator is not None:
            return by_operator
    return weak or _wrong(seen, wrong, measured)


def _unsteady(seen: Seen) -> str:
    """A deciding tensor that the device, but not the CPU, moves by more than its tolerance from one run to the next."""
    for name, distance in seen.arrays.items():
        one = seen.reference.yardsticks.get(name.removeprefix("again/"))
        if not name.startswith("again/") or one is None or one.exempt is not None:
            continue
        steady = float(seen.reference.arrays.get(name, 0.0)) <= one.tolerance
        if steady and not float(distance) <= one.tolerance:
            return one.name
    return ""


def _flaky(unsteady: str, wrong: list[Measured], measured: list[Measured]) -> Finding:
    words = (
        f"the same step gave two different {unsteady} in two runs, on the CPU the same; {len(wrong)} tensors are wrong"
    )
    return finding(Check.PARITY, Kind.INCONCLUSIVE_FLAKY, words, detail="2 variants in 2 runs", **_counts(measured))


def _structure(seen: Seen, device: Observation) -> Iterable[Measured]:
    """Tensors only one side has, and tensors of another dtype."""
    reference, arrays = seen.reference, seen.arrays
    expected = {name.removeprefix("same/") for name in reference.arrays if name.startswith("same/")}
    present = {name for name in arrays if not name.startswith(NOT_COMPARED)}
    missing = expected - present if seen.stopped is None else set()
    for name in sorted(missing | (present - expected)):
        if name not in missing and _stands_for_none(seen, name):
            yield Measured(yardstick=Yardstick(name=name, count=arrays[name].size, exempt=Exempt.UNREACHED), ratio=0.0)
            continue
        side = "missing on the device" if name in missing else "only on the device"
        kind = Kind.PARITY_STRUCTURE if group_of(name) in ("output", "buffer") else Kind.PARITY_MISSING
        yield Measured(yardstick=Yardstick(name=name, count=0), ratio=np.inf, kind=kind, note=side)
    for name in sorted(expected & present):
        was, now = reference.observation.dtypes[f"same/{name}"], device.dtypes.get(name, "")
        if was != now:
            one = reference.yardsticks.get(name) or Yardstick(name=name, count=0)
            yield Measured(yardstick=one, ratio=np.inf, kind=Kind.PARITY_DTYPE, note=f"{now} instead of {was}")


def _stands_for_none(seen: Seen, name: str) -> bool:
    """A compiled backward returns zeros for a parameter that the loss does not reach, where autograd leaves None; what
    the optimizer makes of it is compared on its own (torch/_functorch/_aot_autograd/runtime_wrappers.py)."""
    return seen.variant.mode is Mode.COMPILE and group_of(name) == "grad" and not seen.arrays[name].any()


def _compare(reference: Reference, device: Observation, arrays: Arrays) -> Iterable[Measured]:
    for name, yardstick in reference.yardsticks.items():
        if yardstick.group == "update":
            parameter = name.removeprefix("update/")
            if f"param/{parameter}" in arrays:
                yield steps.compare(parameter, reference.weights, arrays, yardstick)
        elif yardstick.group == "token":
            yield from _choice(name, reference, arrays)
        elif name in arrays and device.dtypes.get(name) == reference.observation.dtypes[f"same/{name}"]:
            yield measure(arrays[name], reference.arrays[f"oracle/{name}"], yardstick)


def _choice(name: str, reference: Reference, arrays: Arrays) -> Iterable[Measured]:
    step = name.removeprefix("token/")
    margin, logits = reference.arrays.get(f"margin/{step}"), reference.yardsticks.get(f"output/step.{step}")
    if name in arrays and margin is not None and logits is not None:
        yield choices.compare(name, arrays[name], reference.arrays[f"oracle/{name}"], margin, logits)


def _wrong(seen: Seen, wrong: list[Measured], measured: list[Measured]) -> Finding:
    """What is wrong with the tensors, where no operator is known to be to blame."""
    first = min(wrong, key=lambda one: _rank(seen.reference, one))
    words = f"{len(wrong)} of {len(measured)} tensors are wrong; first {first.yardstick.name}: {_words(first)}"
    if operators.complete(seen.search) and seen.search is not None:
        words = f"{words}; none of the {seen.search.searched} operator calls of the step is wrong by itself"
        words = f"{words}; {seen.search.parted}" if seen.search.parted else words
    kind = first.kind or Kind.PARITY_SCATTER
    worst = max(one.ratio for one in wrong)
    group = first.yardstick.group
    return finding(Check.PARITY, kind, words, detail=group, measure=worst, **_evidence(seen, wrong, measured))


def _caused(seen: Seen, wrong: list[Measured], measured: list[Measured], deviations: Sequence[Deviation]) -> Finding:
    """The outcome is that of the operator to blame: it is the same in every model, while what it does to a model's
    tensors is not."""
    blamed = operators.to_blame(deviations) or deviations[0]
    name = operators.pattern(blamed)
    tensors = f"{len(wrong)} of {len(measured)} tensors are"
    words = f"{name} is wrong, first in {blamed.progress.value}: {blamed.words}; {tensors}"
    return finding(
        Check.PARITY,
        Kind(blamed.kind),
        words,
        detail=name,
        others=[Outcome.of(Kind(one.kind), operators.pattern(one)) for one in deviations],
        measure=max((one.ratio for one in wrong), default=blamed.ratio),
        **_evidence(seen, wrong, measured),
    )


def _by_operator(seen: Seen, wrong: list[Measured], measured: list[Measured]) -> Finding | None:
    """The verdict of a step in which every operator is right; None where the tensors tell of more than rounding.

    A parameter's step is judged from the device's own gradient, so what rounding did before it is no excuse.
    """
    search = seen.search
    if search is None or any(one.kind in _FATAL or one.yardstick.group == "update" for one in wrong):
        return None
    unlike = _unlike(seen)
    if unlike:
        return _flaky(unlike, wrong, measured)
    if search.decided <= seen.thresholds.parity_coverage * search.searched:
        return None
    noisy = (
        f"{len(wrong)} tensors are further off than on the CPU" if wrong else "rounding hides the tensors of this model"
    )
    words = f"{noisy}, but each of the {search.searched} operator calls of the step is right by its own inputs"
    if search.open_choices:
        words = f"{words}; {search.open_choices} of {search.choices} choices were open"
    worst = max((one.ratio for one in wrong), default=0.0)
    return finding(Check.PARITY, Kind.PARITY_PASS, words, measure=worst, **_evidence(seen, wrong, measured))


def _unlike(seen: Seen) -> str:
    """A tensor that differed between the run and its repetition by more than rounding may explain."""
    for name, again in seen.search_arrays.items():
        first, one = seen.arrays.get(name), seen.reference.yardsticks.get(name)
        if (
            name.startswith(NOT_COMPARED)
            or first is None
            or one is None
            or np.array_equal(first, again, equal_nan=True)
        ):
            continue
        if first.shape != again.shape or first.dtype.kind != "f":
            return name
        if not rms(np.asarray(first, dtype=np.float64) - again) <= one.cpu_error:
            return name
    return ""


def _evidence(seen: Seen, wrong: list[Measured], measured: list[Measured]) -> dict[str, Any]:
    search = seen.search
    return {
        "first": _facts(min(wrong, key=lambda one: _rank(seen.reference, one))) if wrong else None,
        "wrong": [_facts(one) for one in sorted(wrong, key=lambda one: -one.ratio)[:SHOWN]],
        "wrong_by_group": dict(Counter(one.yardstick.group for one in wrong)),
        "deviations": [asdict(one) for one in search.deviations] if search else [],
        "searched": search.searched if search else None,
        "choices": search.choices if search else None,
        "open_choices": search.open_choices if search else None,
        **_counts(measured),
    }


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


def _power(seen: Seen, measured: list[Measured]) -> Finding | None:
    """Say why a clean comparison proves nothing, if it does not."""
    deciding = Counter(one.yardstick.group for one in measured if one.yardstick.exempt is None)
    facts = _counts(measured)
    no_oracle = seen.reference.observation.no_oracle
    if no_oracle:
        words = f"there is no float64 run to compare with: {no_oracle}"
        return no_power(Check.PARITY, words, detail="no oracle", **facts)
    if not any(name.startswith("oracle/output/") for name in seen.reference.arrays):
        return no_power(Check.PARITY, "the model returned no tensor to compare", detail="no outputs", **facts)
    if not deciding["output"]:
        return no_power(Check.PARITY, "every output is exempt, so a wrong one could pass", detail="outputs", **facts)
    gradients = sum(one.yardstick.group == "grad" for one in measured)
    needed = seen.thresholds.parity_coverage * gradients
    wanted = seen.variant.phase is Phase.TRAIN or (seen.variant.phase is Phase.GRADIENT and gradients > 0)
    if wanted and deciding["grad"] <= needed:
        words = f"only {deciding['grad']} of {gradients} gradient tensors can decide anything"
        return no_power(Check.PARITY, words, detail="gradients", **facts)
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
        "histogram": _histogram(measured),
    }


def _histogram(measured: list[Measured]) -> dict[str, list[float] | list[int]]:
    """How many deciding tensors are how far off, in tolerances: below the first edge, between two, from the last on."""
    ratios = [one.ratio for one in measured if one.yardstick.exempt is None]
    places = Counter(int(place) for place in np.searchsorted(BINS, ratios, side="right"))
    return {"edges": list(BINS), "counts": [places[place] for place in range(len(BINS) + 1)]}
