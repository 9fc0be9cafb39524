"""Float64 everywhere: the run that every other run is measured against."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

WIDE: Final = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}
_NARROWING: Final = {torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16}
_GROUPED: Final[set[Any]] = {nn.functional.grouped_mm, torch._grouped_mm}
_DRAWS: Final = frozenset(
    {
        "bernoulli",
        "bernoulli_",
        "cauchy_",
        "exponential_",
        "geometric_",
        "log_normal_",
        "multinomial",
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


@contextmanager
def float64(case_dtype: torch.dtype) -> Iterator[None]:
    """Within, every request for a narrower float gives float64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _Widening(case_dtype):
            yield
    finally:
        torch.set_default_dtype(before)


class _Widening(TorchFunctionMode):
    """Models ask for float32 by name inside (norms, softmax, rotary angles), which would round a float64 run.

    Random numbers are drawn in the dtype of the case and then widened, or the oracle would see other numbers.
    """

    def __init__(self, case_dtype: torch.dtype) -> None:
        super().__init__()
        self._case_dtype = case_dtype

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _NARROWING:
            return args[0].double()
        if func in _GROUPED:
            return grouped_mm(*tree_map(_widen, args), **tree_map(_widen, kwargs))
        name = getattr(func, "__name__", "")
        if name in _DRAWS:
            return self._draw(func, args, kwargs, in_place=name.endswith("_"))
        if kwargs.get("dtype") in WIDE:
            kwargs = {**kwargs, "dtype": WIDE[kwargs["dtype"]]}
        if any(type(arg) is torch.dtype for arg in args):
            args = tuple(WIDE.get(arg, arg) if type(arg) is torch.dtype else arg for arg in args)
        try:
            return func(*args, **kwargs)
        except RuntimeError:
            if not any(isinstance(leaf, Tensor) and leaf.dtype in WIDE for leaf in tree_leaves((args, kwargs))):
                raise
            # A float32 tensor that is neither parameter nor buffer (a literal, an attribute) met a float64 one.
            wide_args, wide_kwargs = tree_map(_widen, (args, kwargs))
            return func(*wide_args, **wide_kwargs)

    def _draw(self, func: Any, args: Any, kwargs: Any, *, in_place: bool) -> Any:
        takes_tensor = any(isinstance(arg, Tensor) for arg in (*args, *kwargs.values()))
        if not takes_tensor and "dtype" not in kwargs:
            kwargs = {**kwargs, "dtype": torch.float32}
        narrow_args, narrow_kwargs = tree_map(self._narrow, (args, kwargs))
        drawn = func(*narrow_args, **narrow_kwargs)
        return args[0].copy_(drawn) if in_place else tree_map(_widen, drawn)

    def _narrow(self, value: Any) -> Any:
        wide = isinstance(value, Tensor) and value.dtype is torch.float64
        return value.to(self._case_dtype) if wide else value


def grouped_mm(
    a: Tensor, b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Tensor:
    """`torch.nn.functional.grouped_mm`, which has no float64 kernel: one product for each group of rows, columns or
    addends. `out_dtype` is not followed: the oracle keeps float64."""
    del out_dtype
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
