"""Kernels in Python, one above the other, inside an operator's recorded entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Layer = Callable[[Any, Callable[[], Any]], Any]
"""Takes the call and a function that runs the layer below; returns what the operator returns."""


class Layers:
    """What stands above each operator's standard kernel; the last one put is the outermost."""

    def __init__(self, shim: Any) -> None:
        self._shim = shim
        self._of: dict[str, Callable[[Any], Any]] = {}

    def put(self, name: str, layer: Layer) -> None:
        """Put `layer` above everything the operator `name` has so far."""
        below = self._of.get(name, _standard)

        def kernel(call: Any) -> Any:
            return layer(call, lambda: below(call))

        self._of[name] = kernel
        self._shim.replace(name, kernel)

    def clear(self) -> None:
        """Let every operator do again what it does below all layers."""
        for name in self._of:
            self._shim.replace(name, _standard)
        self._of.clear()


def _standard(call: Any) -> Any:
    return call.standard()
