"""Float64 everywhere: the run that every other run is measured against."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

WIDE: Final = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}
_DRAWS: Final = frozenset(
    {
        "bernoulli",
        "bernoulli_",
        "cauchy_",
        "exponential_",
        "geometric_",
        "log_normal_",
        "multinomial",
        "native_dropout",
        "normal",
        "normal_",
        "poisson",
        "rand",
        "rand_like",
        "randn",
        "randn_like",
        "random_",
        "uniform_",
    }
)


class Float64Mode(TorchDispatchMode):
    """Turns every request for a narrower float into float64.

    Models ask for float32 by name inside (norms, softmax, rotary angles), which would round a float64 run to float32.
    Random numbers are drawn in the dtype of the case and then widened, or the oracle would see other numbers.
    """

    def __init__(self, case_dtype: torch.dtype) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._case_dtype = case_dtype

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.overloadpacket.__name__ in _DRAWS:
            return self._draw(func, args, kwargs)
        if kwargs.get("dtype") in WIDE:
            kwargs = {**kwargs, "dtype": WIDE[kwargs["dtype"]]}
        if any(type(arg) is torch.dtype for arg in args):
            args = tuple(WIDE.get(arg, arg) if type(arg) is torch.dtype else arg for arg in args)
        if func is torch.ops.aten._grouped_mm.default:
            return grouped_mm(*tree_map(_widen, args), **{**kwargs, "out_dtype": None})
        try:
            return func(*args, **kwargs)
        except RuntimeError:
            if func._schema.is_mutable:
                raise
            # A float32 tensor that is neither parameter nor buffer (a literal, an attribute) met a float64 one.
            wide_args, wide_kwargs = tree_map(_widen, (args, kwargs))
            return func(*wide_args, **wide_kwargs)

    def _draw(self, func: Any, args: Any, kwargs: Any) -> Any:
        narrow_args, narrow_kwargs = tree_map(self._narrow, (args, kwargs))
        drawn = func(*narrow_args, **narrow_kwargs)
        if not func._schema.is_mutable:
            return tree_map(_widen, drawn)
        args[0].copy_(narrow_args[0])
        return args[0]

    def _narrow(self, value: Any) -> Any:
        wide = isinstance(value, Tensor) and value.dtype is torch.float64
        return value.to(self._case_dtype) if wide else value


def grouped_mm(a: Tensor, b: Tensor, offs: Tensor | None = None, bias: Tensor | None = None, **_: Any) -> Tensor:
    """`aten::_grouped_mm`, which has no float64 kernel: one product for each group of rows, columns or addends."""
    if offs is None:
        product = torch.bmm(a, b)
    else:
        ends = [0, *offs.tolist()]
        groups = list(pairwise(ends))
        match a.dim(), b.dim():
            case 2, 3:
                product = torch.cat([a[i:j] @ b[g] for g, (i, j) in enumerate(groups)] + [a[ends[-1] :] @ b[0] * 0])
            case 3, 2:
                product = torch.cat([a[g] @ b[:, i:j] for g, (i, j) in enumerate(groups)], dim=1)
            case 2, 2:
                product = torch.stack([a[:, i:j] @ b[i:j] for i, j in groups])
            case dims:
                raise NotImplementedError(f"grouped_mm of {dims} dimensions with offsets")
    return product if bias is None else product + bias


def _widen(value: Any) -> Any:
    return value.to(WIDE[value.dtype]) if isinstance(value, Tensor) and value.dtype in WIDE else value
