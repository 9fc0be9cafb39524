"""What the CPU makes of one call, by every route it has: what a kernel gives has to be what one of them gives."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import numpy as np
from torch import Tensor

from neuronqa.fixqueue.child.execution import Execution
from neuronqa.fixqueue.child.layout import Arrays, host
from neuronqa.fixqueue.kinds import Route

OTHERS: Final = (Route.APART, Route.AMONG)
"""Beside the plain one and double precision; asked where inputs are not finite."""
_NEAR: Final = 0.02
"""Rounding, in half precision too."""


def others(call: Mapping[str, Any], arrays: Arrays) -> dict[Route, Arrays]:
    """Results and gradients by the other routes, `NAME` -> array.

    Only by those that lead to the same thing: where the inputs are finite they have to give what the call itself gives.
    """
    finite = {name: _finite(value) for name, value in arrays.items() if name.startswith(f"{call['id']}/")}
    plain = along(call, finite, Route.PLAIN)
    found: dict[Route, Arrays] = {}
    for route in OTHERS:
        rehearsed = along(call, finite, route)
        same = {name for name, value in rehearsed.items() if _alike(value, plain.get(name))}
        found[route] = {name: value for name, value in along(call, arrays, route).items() if name in same}
    return found


def along(call: Mapping[str, Any], arrays: Arrays, route: Route) -> Arrays:
    """Results and gradients by one route; nothing of what cannot be had by it."""
    seen: dict[str, Any] = {}
    with suppress(Exception):  # whatever an operator raises that knows no such route
        run = Execution(call, arrays, "cpu", route)
        seen |= run.forward().values
        if call["cotangents"]:
            seen |= run.backward()
    tensors = {name: host(value) for name, value in seen.items() if isinstance(value, Tensor)}
    return (
        {name: np.asarray(value[0]) for name, value in tensors.items() if value.ndim}
        if route is Route.AMONG
        else tensors
    )


def _finite(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.where(np.isfinite(value), value, 1).astype(value.dtype) if value.dtype.kind == "f" else value


def _alike(value: np.ndarray[Any, Any], plain: np.ndarray[Any, Any] | None) -> bool:
    return plain is not None and value.shape == plain.shape and bool(np.allclose(value, plain, _NEAR, _NEAR, True))
