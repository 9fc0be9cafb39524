"""Is what a kernel gave what the CPU gives? Plain arrays in, one reason out. Needs NumPy only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from neuronqa.fixqueue.kinds import Kind, Route
from neuronqa.fixqueue.reason import Reason

Array = np.ndarray[Any, Any]

EPSILON: Final = {"float64": 2.0**-23, "float32": 2.0**-23, "bfloat16": 2.0**-7, "float16": 2.0**-10}
"""Rounding of a result. The device may keep double precision in single."""
ROUNDINGS: Final = {"float64": 16.0, "float32": 16.0, "bfloat16": 3.0, "float16": 6.0}
"""How many of them a kernel of several operators may be off by, of an element and of the root mean square of all."""
CPU_FACTOR: Final = 4.0
"""How much farther off than the CPU's own largest error."""
ANOTHER: Final = 0.1
"""Of a number and the scale of all: routes that are farther apart do not round, they say different things."""
_HUGE: Final = 1e150
"""Its square is no double any more."""
OPERATORS: Final = 1000
"""Device operators that one call may take: more means a loop over elements."""
_BY_KIND: Final = {
    Kind.SHAPES: Reason.SHAPES,
    Kind.STRIDES: Reason.STRIDES,
    Kind.BROADCASTING: Reason.BROADCASTING,
    Kind.EMPTY: Reason.EMPTY,
    Kind.NOT_FINITE: Reason.NOT_FINITE,
}
_BACKWARD_BY_KIND: Final = {
    Kind.STRIDES: Reason.BACKWARD_STRIDES,
    Kind.NOT_FINITE: Reason.BACKWARD_NOT_FINITE,
}


def difference(
    call: Mapping[str, Any],
    expected: Mapping[str, Any],
    seen: Mapping[str, Any],
    wanted: Mapping[str, Array],
    actual: Mapping[str, Array],
) -> Reason | None:
    """The plainest thing that is wrong with one call; None if nothing is.

    `wanted` holds `ID/ROUTE/NAME` for the routes that were taken, `actual` `ID/NAME`.
    """
    kind = Kind(call["kind"])
    if seen["error"]:
        return _BY_KIND.get(kind, Reason.RAISES)
    if seen["fell_back"]:
        return Reason.FALLS_BACK
    if not set(seen["changed"]) <= set(expected["changed"]):
        return Reason.CHANGES_INPUTS
    if kinds_differ(expected["values"], seen["values"]):
        return Reason.EMPTY if kind is Kind.EMPTY else Reason.RESULT_KIND
    if any(ours and not theirs for ours, theirs in zip(seen["aliases"], expected["aliases"], strict=False)):
        return Reason.ALIASES
    asked = {name: what for name, what in expected["values"].items() if not _skipped(kind, what)}
    if not _all_alike(call, asked, wanted, actual):
        return Reason.IN_PLACE if "m0" in expected["values"] else _BY_KIND.get(kind, Reason.VALUES)
    if seen["operators"] > OPERATORS:
        return Reason.TOO_SLOW
    if seen.get("repeats") is False:
        return Reason.NOT_REPEATABLE
    right = not kinds_differ(expected["gradients"], seen["gradients"])
    if right and _all_alike(call, expected["gradients"], wanted, actual):
        return None
    return _BACKWARD_BY_KIND.get(kind, Reason.BACKWARD)


def kinds_differ(expected: Mapping[str, Any], seen: Mapping[str, Any]) -> bool:
    """Do two sets of results differ in their number, dtypes, shapes, or what is no tensor?"""
    return dict(expected) != dict(seen)


def _skipped(kind: Kind, what: Any) -> bool:
    """What is no tensor was compared as such; which of equal elements an index names is nobody's promise."""
    return not isinstance(what, dict) or (kind in (Kind.TIES, Kind.NOT_FINITE) and what["dtype"] == "int64")


def _all_alike(
    call: Mapping[str, Any], asked: Mapping[str, Any], wanted: Mapping[str, Array], actual: Mapping[str, Array]
) -> bool:
    tensors = {name: what["dtype"] for name, what in asked.items() if isinstance(what, dict)}
    return all(_alike(call, name, dtype, wanted, actual) for name, dtype in tensors.items())


def _alike(
    call: Mapping[str, Any], name: str, dtype: str, wanted: Mapping[str, Array], actual: Mapping[str, Array]
) -> bool:
    known = {route: wanted.get(f"{call['id']}/{route}/{name}") for route in Route}
    routes = {route: value for route, value in known.items() if value is not None}
    cpu, ours = routes[Route.PLAIN], actual.get(f"{call['id']}/{name}")
    if ours is None or ours.shape != cpu.shape:
        return False
    several = call["kind"] == Kind.NOT_FINITE
    if dtype not in EPSILON:
        return any(np.array_equal(ours, value) for value in (routes.values() if several else (cpu,)))
    if several:
        return close_to_one(ours, routes, dtype)
    return close(ours, cpu, routes.get(Route.DOUBLE, cpu), dtype)


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
    scale = float(np.sqrt(np.mean(np.square(exact)))) if np.abs(exact).max() < _HUGE else 0.0
    allowed = CPU_FACTOR * np.abs(cpu - exact).max() + rounding * (np.abs(exact) + scale)
    return bool((np.abs(ours - exact) <= allowed).all())


def close_to_one(ours: Array, routes: Mapping[Route, Array], dtype: str) -> bool:
    """Is each element what one route of the CPU makes of it: the same NaN or infinity, or as near as rounding lets it?

    Where the routes agree, as they mostly do, nothing else is right.
    """
    ours = np.asarray(ours, np.float64)
    several = [np.asarray(one, np.float64) for one in routes.values()]
    with np.errstate(invalid="ignore"):
        cpu, exact = several[0], np.asarray(routes.get(Route.DOUBLE, several[0]), np.float64)
        size = np.abs(np.where(np.isfinite(exact), exact, 0.0))
        scale = float(np.sqrt(np.mean(np.square(size)))) if size.size and size.max() < _HUGE else 0.0
        off = np.abs(cpu - exact)
        rounded = off[off <= ANOTHER * (size + scale)]
        allowed = EPSILON[dtype] * ROUNDINGS[dtype] * (size + scale)
        allowed = allowed + (CPU_FACTOR * rounded.max() if rounded.size else 0.0)
        right = [(ours == one) | (np.isnan(ours) & np.isnan(one)) | (np.abs(ours - one) <= allowed) for one in several]
    return bool(np.logical_or.reduce(right).all())


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
    Reason.BACKWARD_NOT_FINITE,
)
"""What is told first."""
