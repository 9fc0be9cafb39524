"""Faults and good twins planted from outside a device: a dispatch mode in the device child that stands between the
model and the operators.

So that a device that takes no faults of its own can be given controls too. What a mode cannot reach (a kernel inside a
compiled graph that does not go through the dispatcher) it cannot spoil; such kinds stay unguarded there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from neuronqa.domain.trial import matches
from neuronqa.errors import BadInput

WIDER: Final = {torch.float32: torch.float64, torch.bfloat16: torch.float32, torch.float16: torch.float32}


_NOT_WIDENED: Final = ("aten::native_batch_norm", "aten::batch_norm", "aten::_scaled_dot_product_*")
"""Operators that write running statistics without saying so in their schema, or return a float32 beside bfloat16."""


@dataclass(frozen=True)
class Call:
    """One call of an operator, and what was ordered to be done about it."""

    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    order: Mapping[str, Any]

    def run(self) -> Any:
        return self.func(*self.args, **self.kwargs)


Way = Callable[[Call], Any]


def _results(change: Callable[[Tensor, Mapping[str, Any]], Tensor]) -> Way:
    """A way that runs the operator and then changes every float it returns, in place where the operator works so."""

    def way(call: Call) -> Any:
        mutable = call.func._schema.is_mutable

        def spoil(value: Any) -> Any:
            if not _floating(value):
                return value
            changed = change(value, call.order)
            return value.copy_(changed) if mutable else changed

        return tree_map(spoil, call.run())

    return way


def _wide(call: Call) -> Any:
    """The operator in a wider dtype, its results rounded once: an arithmetic that is better than the CPU's."""
    if (
        call.func._schema.is_mutable
        or "dtype" in call.kwargs
        or any(fnmatchcase(call.func._schema.name, one) for one in _NOT_WIDENED)
    ):
        return call.run()
    narrow = {value.dtype for value in call.args if _floating(value) and value.dtype in WIDER}
    if len(narrow) != 1:
        return call.run()
    dtype = narrow.pop()
    wide = WIDER[dtype]
    try:
        result = call.func(*tree_map(_cast(dtype, wide), call.args), **tree_map(_cast(dtype, wide), call.kwargs))
    except RuntimeError:  # Not every operator has a float64 kernel.
        return call.run()
    return tree_map(_cast(wide, dtype), result)


def _reordered(call: Call) -> Any:
    """Sums in another order: what another tiling of the same arithmetic gives."""
    name = call.func._schema.name
    if name in ("aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm"):
        left = len(call.args) - 2 if name in ("aten::mm", "aten::bmm") else 1
        a, b = call.args[left], call.args[left + 1]
        order = torch.arange(a.shape[-1] - 1, -1, -1, device=a.device)
        args = (*call.args[:left], a.index_select(-1, order), b.index_select(-2, order), *call.args[left + 2 :])
        return call.func(*args, **call.kwargs)
    if name in ("aten::sum", "aten::mean") and _floating(call.args[0]) and len(call.args) > 1:
        given = call.args[0]
        axes = call.args[1] or list(range(given.dim()))
        return call.func(given.flip(axes), *call.args[1:], **call.kwargs)
    return call.run()


def _raise(call: Call) -> Any:
    raise RuntimeError(f"planted: {operator(call.func)} failed")


def _exit(call: Call) -> Any:
    os._exit(int(call.order.get("code", 0)))


def _abort(_call: Call) -> Any:
    os.abort()


def _hang(_call: Call) -> Any:
    while True:
        pass


WAYS: Final[Mapping[str, Way]] = {
    "scale": _results(lambda tensor, order: tensor * float(order.get("factor", 1.5))),
    "zero": _results(lambda tensor, _: torch.zeros_like(tensor)),
    "nan": _results(lambda tensor, _: torch.full_like(tensor, float("nan"))),
    "sign": _results(lambda tensor, _: -tensor),
    "raise": _raise,
    "exit": _exit,
    "abort": _abort,
    "hang": _hang,
    "twin:wide": _wide,
    "twin:reordered": _reordered,
}
"""What can be planted from outside, by name; `twin:` ones are right, and nothing may call them wrong."""


def _spoilt(factor: float) -> Callable[[Any], Any]:
    return lambda value: value * factor if _floating(value) else value


GRAPH_WAYS: Final[Mapping[str, Callable[[Callable[..., Any], Callable[..., Any], tuple[Any, ...]], Any]]] = {
    "graph:scale": lambda compiled, _graph, args: tree_map(_spoilt(1.5), compiled(*args)),
    "graph:nan": lambda compiled, _graph, args: tree_map(_spoilt(float("nan")), compiled(*args)),
    "graph:not-executed": lambda _compiled, graph, args: graph(*args),
}
"""What can be planted where a compiled graph is called: `(compiled, graph, arguments) -> result`."""


class Planted(TorchDispatchMode):
    """Stands in for the operators that match `order["op"]` (`aten::mm`, `aten::*_backward`; all by default), but for
    their first `order["after"]` calls.

    Stays silent while anything is being traced, so that it changes numbers and never graphs. Raises BadInput for a
    kind it does not know.
    """

    def __init__(self, order: Mapping[str, Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        kind = str(order.get("kind", ""))
        if kind not in WAYS:
            known = ", ".join((*WAYS, *GRAPH_WAYS))
            raise BadInput(f"no fault of kind {kind!r} can be planted from outside", hint=f"one of {known}")
        self._order = order
        self._way = WAYS[kind]
        self._pattern = str(order.get("op", "*"))
        self._idle = int(order.get("after", 0))

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if tracing() or func.is_view or not self._matches(func):
            return func(*args, **(kwargs or {}))
        if self._idle:
            self._idle -= 1
            return func(*args, **(kwargs or {}))
        return self._way(Call(func, args, kwargs or {}, self._order))

    def _matches(self, func: Any) -> bool:
        return matches(self._pattern, operator(func))


def operator(func: Any) -> str:
    """`aten::mm`, `aten::add.Tensor`: the schema's name, with the overload where there is one."""
    overload = func._schema.overload_name
    return f"{func._schema.name}.{overload}" if overload else str(func._schema.name)


def tracing() -> bool:
    """Is a compiler looking at fake tensors right now?"""
    return torch._guards.TracingContext.try_get() is not None


def _cast(source: torch.dtype, target: torch.dtype) -> Callable[[Any], Any]:
    return lambda value: value.to(target) if isinstance(value, Tensor) and value.dtype is source else value


def _floating(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()
