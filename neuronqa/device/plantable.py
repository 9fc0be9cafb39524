"""What can be planted in a device, by name of the device; no torch here, so that a driver can plan with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from neuronqa.domain.case import Mode, Variant
from neuronqa.domain.observation import MEMORY
from neuronqa.domain.outcome import Check
from neuronqa.domain.trial import Plant

NUMERIC: Final = (Check.PARITY, Check.TRAIN)
SHORT_S: Final = 8.0
_ENDLESS: Final = ("hang", "slow", "compiler-hang")
_LONG_S: Final = 60.0
_FATAL: Final = ("segfault", "abort", "killed", "exit", "leak", *_ENDLESS)
"""Kinds of operators' faults that a process does not outlive, or not as it was."""
_BETWEEN: Final = ("late-write",)
"""Kinds that act between operators: what they wrote over is to blame, or the call during which they wrote."""
_DOSES: Final[Mapping[str, tuple[Mapping[str, float], ...]]] = {
    "noise": ({"share": 1e-2}, {"share": 1e-4}, {"share": 1e-5}, {"share": 1e-6}),
    "scale": ({"factor": 1.02}, {"factor": 1.001}, {"factor": 1.0001}, {"factor": 1.00001}),
}
"""Sizes from certain to be noticed to none of anybody's business: the power curve between is made of them."""

_OUTSIDE: Final[Mapping[str, Check | None]] = {
    "scale": Check.PARITY,
    "zero": Check.PARITY,
    "nan": Check.PARITY,
    "sign": Check.PARITY,
    "raise": Check.RUN,
    "exit": Check.RUN,
    "abort": Check.RUN,
    "hang": Check.RUN,
    "twin:wide": None,
    "twin:reordered": None,
}
_OUTSIDE_GRAPH: Final[Mapping[str, Check]] = {
    "graph:scale": Check.PARITY,
    "graph:nan": Check.PARITY,
    "graph:not-executed": Check.COMPILE,
}
_OUTSIDE_OPS: Final = "aten::mm|aten::addmm|aten::bmm|aten::_softmax|aten::native_layer_norm|aten::gelu|aten::silu"


def plants(device: str, variant: Variant) -> tuple[Plant, ...]:
    """Every fault and good twin that `device` takes in the mode of `variant`."""
    return _simulated(variant.mode) if device == "neuron" else _outside(variant.mode)


def unguarded(device: str) -> tuple[str, ...]:
    """Names of checks that nothing planted in `device` can prove able to fail."""
    guarded = {plant.check for mode in Mode for plant in (_simulated(mode) if device == "neuron" else _outside(mode))}
    return tuple(check.value for check in Check if check.value not in guarded)


def _simulated(mode: Mode) -> tuple[Plant, ...]:
    from neuronqa.device.neuron.faults import KINDS

    return tuple(
        Plant(
            kind=kind.name,
            op=kind.op,
            check=kind.check.value if kind.check else "",
            fault={"kind": kind.name, **dose},
            numeric=kind.check is None or kind.check in NUMERIC,
            culprit=f"{MEMORY}|{kind.op}" if kind.name in _BETWEEN else "",
            deadline_s=SHORT_S if kind.name in _ENDLESS else _LONG_S,
            removable=mode is Mode.EAGER and kind.name not in _FATAL,
        )
        for kind in KINDS.values()
        if mode in kind.modes
        for dose in _DOSES.get(kind.name, ({},))
    )


def _outside(mode: Mode) -> tuple[Plant, ...]:
    """Operators are reached where they are called one by one, and a compiled graph where it is called."""
    if mode is Mode.COMPILE:
        return tuple(
            Plant(kind=name, op="", check=check.value, fault={"kind": name}, numeric=check in NUMERIC)
            for name, check in _OUTSIDE_GRAPH.items()
        )
    return tuple(
        Plant(
            kind=name,
            op=_OUTSIDE_OPS,
            check=check.value if check else "",
            fault={"kind": name, "op": _OUTSIDE_OPS},
            numeric=check is None or check in NUMERIC,
            deadline_s=SHORT_S if name in _ENDLESS else _LONG_S,
        )
        for name, check in _OUTSIDE.items()
    )
