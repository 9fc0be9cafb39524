"""Is what a kernel gave what the CPU gives? Plain arrays in, one reason out. Needs NumPy only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from neuronqa.fixqueue.kinds import Kind
from neuronqa.fixqueue.reason import Reason

Array = np.ndarray[Any, Any]

EPSILON: Final = {"float64": 2.0**-23, "float32": 2.0**-23, "bfloat16": 2.0**-7, "float16": 2.0**-10}
"""Rounding of a result. The device may keep double precision in single."""
ROUNDINGS: Final = {"float64": 16.0, "float32": 16.0, "bfloat16": 3.0, "float16": 6.0}
"""How many of them a kernel of several operators may be off by, of an element and of the root mean square of all."""
CPU_FACTOR: Final = 4.0
"""How much farther off than the CPU's own largest error."""
OPERATORS: Final = 1000
"""Device operators that one call may take: more means a loop over elements."""
_BY_KIND: Final = {
    Kind.SHAPES: Reason.SHAPES,
    Kind.STRIDES: Reason.STRIDES,
    Kind.BROADCASTING: Reason.BROADCASTING,
    Kind.EMPTY: Reason.EMPTY,
    Kind.NOT_FINITE: Reason.NOT_FINITE,
}


def difference(
    call: Mapping[str, Any],
    expected: Mapping[str, Any],
    seen: Mapping[str, Any],
    wanted: Mapping[str, Array],
    actual: Mapping[str, Array],
) -> Reason | None:
    """The plainest thing that is wrong with one call; None if nothing is.

    `wanted` holds `ID/cpu/NAME` and `ID/exact/NAME`, `actual` `ID/NAME`.
    """
    kind, number = Kind(call["kind"]), call["id"]
    if seen["error"]:
        return _BY_KIND.get(kind, Reason.RAISES)
    if seen["fell_back"]:
        return Reason.FALLS_BACK
    if seen.get("changed"):
        return Reason.CHANGES_INPUTS
    if kinds_differ(expected["values"], seen["values"]):
        return Reason.EMPTY if kind is Kind.EMPTY else Reason.RESULT_KIND
    if any(ours and not theirs for ours, theirs in zip(seen["aliases"], expected["aliases"], strict=False)):
        return Reason.ALIASES
    if kind is Kind.NOT_FINITE and "_backward" in call["op"]:
        return None  # the CPU's vector and scalar paths do not agree what follows from NaN there
    for name, what in expected["values"].items():
        if isinstance(what, dict) and not _skipped(kind, what) and not _alike(number, name, what, wanted, actual):
            return Reason.IN_PLACE if "m0" in expected["values"] else _BY_KIND.get(kind, Reason.VALUES)
    if seen["operators"] > OPERATORS:
        return Reason.TOO_SLOW
    if seen.get("repeats") is False:
        return Reason.NOT_REPEATABLE
    return None if kind is Kind.NOT_FINITE else _backward(call, expected, seen, wanted, actual)


def _backward(
    call: Mapping[str, Any],
    expected: Mapping[str, Any],
    seen: Mapping[str, Any],
    wanted: Mapping[str, Array],
    actual: Mapping[str, Array],
) -> Reason | None:
    reason = Reason.BACKWARD_STRIDES if call["kind"] == Kind.STRIDES else Reason.BACKWARD
    if kinds_differ(expected["gradients"], seen["gradients"]):
        return reason
    tensors = {name: what for name, what in expected["gradients"].items() if isinstance(what, dict)}
    right = all(_alike(call["id"], name, what, wanted, actual) for name, what in tensors.items())
    return None if right else reason


def kinds_differ(expected: Mapping[str, Any], seen: Mapping[str, Any]) -> bool:
    """Do two sets of results differ in their number, dtypes, shapes, or what is no tensor?"""
    return dict(expected) != dict(seen)


def _skipped(kind: Kind, what: Mapping[str, Any]) -> bool:
    """Which of equal elements an index names is nobody's promise."""
    return kind in (Kind.TIES, Kind.NOT_FINITE) and what["dtype"] == "int64"


def _alike(
    number: int, name: str, what: Mapping[str, Any], wanted: Mapping[str, Array], actual: Mapping[str, Array]
) -> bool:
    cpu, ours = wanted[f"{number}/cpu/{name}"], actual.get(f"{number}/{name}")
    if ours is None or ours.shape != cpu.shape:
        return False
    if what["dtype"] not in EPSILON:
        return bool(np.array_equal(ours, cpu))
    return close(ours, cpu, wanted.get(f"{number}/exact/{name}", cpu), what["dtype"])


def close(ours: Array, cpu: Array, exact: Array, dtype: str) -> bool:
    """Is `ours` as near to the exact result as rounding lets the CPU be, and not finite where the CPU's is not?"""
    ours, cpu, exact = (np.asarray(one, np.float64) for one in (ours, cpu, exact))
    finite = np.isfinite(cpu)
    if not np.array_equal(np.where(finite, 0.0, cpu), np.where(np.isfinite(ours), 0.0, ours), equal_nan=True):
        return False
    exact = np.where(np.isfinite(exact), exact, cpu)
    ours, cpu, exact = ours[finite], cpu[finite], exact[finite]
    if not ours.size:
        return True
    rounding = EPSILON[dtype] * ROUNDINGS[dtype]
    scale = float(np.sqrt(np.mean(np.square(exact)))) if np.abs(exact).max() < 1e150 else 0.0
    allowed = CPU_FACTOR * np.abs(cpu - exact).max() + rounding * (np.abs(exact) + scale)
    return bool((np.abs(ours - exact) <= allowed).all())


def summary(found: Mapping[Reason, int], right: int, several_dtypes: bool) -> Reason:
    """What to tell of many differences: the plainest; and whether it is wrong always or only sometimes."""
    first = min(found, key=ORDER.index)
    if first is Reason.VALUES and right:
        return Reason.DTYPES if several_dtypes else Reason.SHAPES
    return first


ORDER: Final = (
    Reason.FALLS_BACK,
    Reason.RAISES,
    Reason.RESULT_KIND,
    Reason.CHANGES_INPUTS,
    Reason.ALIASES,
    Reason.VALUES,
    Reason.IN_PLACE,
    Reason.NOT_REPEATABLE,
    Reason.TOO_SLOW,
    Reason.BACKWARD,
    Reason.SHAPES,
    Reason.STRIDES,
    Reason.BACKWARD_STRIDES,
    Reason.BROADCASTING,
    Reason.EMPTY,
    Reason.NOT_FINITE,
)
"""What is told first."""
