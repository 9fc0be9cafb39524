"""Faults planted from outside a device: a dispatch mode in the device child spoils what chosen operators return.

So that a device that takes no faults of its own can be given controls too. What a mode cannot reach (a kernel inside a
compiled graph that does not go through the dispatcher) it cannot spoil; such kinds stay unguarded there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from neuronqa.errors import BadInput

Change = Callable[[Tensor, Mapping[str, Any]], Tensor]


def _scale(tensor: Tensor, fault: Mapping[str, Any]) -> Tensor:
    return tensor * float(fault.get("factor", 1.5))


def _zero(tensor: Tensor, fault: Mapping[str, Any]) -> Tensor:
    del fault
    return torch.zeros_like(tensor)


def _nan(tensor: Tensor, fault: Mapping[str, Any]) -> Tensor:
    del fault
    return torch.full_like(tensor, float("nan"))


def _sign(tensor: Tensor, fault: Mapping[str, Any]) -> Tensor:
    del fault
    return -tensor


CHANGES: Final[Mapping[str, Change]] = {"scale": _scale, "zero": _zero, "nan": _nan, "sign": _sign}


class OutsideFault(TorchDispatchMode):
    """Spoils every floating-point result of the operators that match `fault["op"]` (`aten::mm`, `aten::*_backward`).

    Stays silent while anything is being traced, so that it changes numbers and never graphs. Raises BadInput for a
    kind it does not know.
    """

    def __init__(self, fault: Mapping[str, Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        kind = str(fault.get("kind", ""))
        if kind not in CHANGES:
            raise BadInput(
                f"no fault of kind {kind!r} can be planted from outside", hint=f"one of {', '.join(CHANGES)}"
            )
        self._fault = fault
        self._change = CHANGES[kind]
        self._pattern = str(fault.get("op", "*"))

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if tracing() or func.is_view or not self._matches(func):
            return result
        spoil = self._spoil_in_place if func._schema.is_mutable else self._spoil
        return tree_map(spoil, result)

    def _matches(self, func: Any) -> bool:
        return any(fnmatchcase(name, self._pattern) for name in (operator(func), func._schema.name))

    def _spoil(self, value: Any) -> Any:
        return self._change(value, self._fault) if _floating(value) else value

    def _spoil_in_place(self, value: Any) -> Any:
        if _floating(value):
            value.copy_(self._change(value, self._fault))
        return value


def operator(func: Any) -> str:
    """`aten::mm`, `aten::add.Tensor`: the schema's name, with the overload where there is one."""
    overload = func._schema.overload_name
    return f"{func._schema.name}.{overload}" if overload else str(func._schema.name)


def tracing() -> bool:
    """Is a compiler looking at fake tensors right now?"""
    return torch._guards.TracingContext.try_get() is not None


def _floating(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()
