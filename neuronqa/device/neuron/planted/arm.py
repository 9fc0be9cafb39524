"""Puts an ordered fault into a loaded device."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Any

from torch import Tensor

from neuronqa.device.neuron.faults import Fault, Site
from neuronqa.device.neuron.layers import Layers
from neuronqa.device.neuron.planted.effects import EFFECTS, Call, Run
from neuronqa.errors import BadInput

for _module in ("failures", "kernels", "values"):  # importing them registers what they do
    import_module(f"neuronqa.device.neuron.planted.{_module}")


def arm(shim: Any, fault: Fault) -> Callable[[], None]:
    """Plant `fault`, and return what takes it out again: operators then run their standard kernel, from Python.

    A fault of the compiler is the backend's own and not planted here. Raises BadInput when a fault is for an operator
    and no operator has such a name.
    """
    if fault.kind.site is Site.COMPILER:
        return lambda: None
    if fault.kind.site is Site.DEVICE:
        return _unkept(shim)
    targets = matching(shim, fault.op)
    if not targets:
        raise BadInput(f"no operator is named {fault.op!r}", where=f"fault {fault.kind.name}")
    if "mechanism" in fault.parameters:
        return _unsupported(shim, targets, shim.Mechanism(int(fault.number("mechanism"))))
    layers, planted = Layers(shim), _Planted(fault)
    for name in targets:
        layers.put(name, planted)
    return layers.clear


def _unkept(shim: Any) -> Callable[[], None]:
    kept = shim.settings().keeps_parameters
    shim.settings().keeps_parameters = False

    def undo() -> None:
        shim.settings().keeps_parameters = kept

    return undo


def _unsupported(shim: Any, targets: list[str], mechanism: Any) -> Callable[[], None]:
    before = dict(shim.operators())
    for name in targets:
        shim.support(name, mechanism)

    def undo() -> None:
        for name in targets:
            shim.support(name, before[name])

    return undo


def matching(shim: Any, pattern: str) -> list[str]:
    """The device's operators that match one of the patterns joined by `|`."""
    patterns = pattern.split("|")
    return [name for name, _ in shim.operators() if any(fnmatchcase(name, wanted) for wanted in patterns)]


class _Planted:
    """The effect of a fault where its conditions hold, and the kernel below it where they do not."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self._effect = EFFECTS[fault.kind.name]()
        self._calls = 0

    def __call__(self, call: Call, run: Run) -> Any:
        return self._effect(call, run, self._fault) if self._holds(call) else run()

    def _holds(self, call: Call) -> bool:
        parameters = self._fault.parameters
        phase, size = parameters["phase"], int(self._fault.number("size"))
        if phase != "any" and call.in_backward != (phase == "backward"):
            return False
        if size and not any(isinstance(arg, Tensor) and size in arg.shape for arg in call.args[:1]):
            return False
        self._calls += 1
        return int(self._fault.number("nth")) in (0, self._calls)
