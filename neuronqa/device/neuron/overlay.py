"""Overlays: kernels for the device, written in Python, that turn a fallback into a native operator.

An overlay is a file of functions:

    from neuronqa.device.neuron.overlay import kernel

    @kernel("aten::maximum", dtypes=("float32", "bfloat16"))
    def maximum(a, b):
        return torch.where(a > b, a, b)

A function takes the operator's arguments in schema order and returns what the operator returns; its tensors lie on the
device. It may be made of the profile's primitives (tile matmul, elementwise, reduce, gather/scatter, move) and of
nothing else: every other operator it calls, the one it implements included, runs on the CPU and is counted as a
fallback, and so is every tensor it takes to the host.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from neuronqa.errors import BadInput

DTYPES: Final = ("float32", "bfloat16", "float16")
KNOWN_DTYPES: Final = (*DTYPES, "float64", "int8", "int16", "int32", "int64", "uint8", "bool")

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Kernel:
    """One function of an overlay."""

    op: str
    dtypes: tuple[str, ...]
    function: Callable[..., Any]


_collectors: list[list[Kernel]] = []
"""The innermost file being read is the last; outside of reading, decorating does nothing."""


def kernel(op: str, dtypes: tuple[str, ...] = DTYPES) -> Callable[[Function], Function]:
    """Say that the decorated function is the device's kernel for `op`, when its first tensor has one of `dtypes`."""

    def collect(function: Function) -> Function:
        for kernels in _collectors[-1:]:
            kernels.append(Kernel(op, tuple(dtypes), function))
        return function

    return collect


def read(path: str) -> tuple[Kernel, ...]:
    """Execute an overlay file and return its kernels. Raises BadInput with one line that says what is wrong."""
    try:
        code = compile(Path(path).read_text(encoding="utf-8"), path, "exec")
    except OSError as error:
        raise BadInput(f"the overlay cannot be read: {error.strerror}", where=path) from error
    except (SyntaxError, ValueError) as error:
        raise BadInput(f"the overlay is not Python: {error}", where=path) from error
    module = types.ModuleType(f"neuronqa_overlay_{Path(path).stem}")
    module.__file__ = path
    sys.modules[module.__name__] = module
    with _collecting() as kernels:
        try:
            exec(code, module.__dict__)  # noqa: S102  running an overlay is what it is for; only a device child does
        except Exception as error:
            raise BadInput(f"the overlay raises {type(error).__name__}: {error}", where=path) from error
    if not kernels:
        raise BadInput("the overlay has no @kernel function", where=path)
    return tuple(kernels)


@contextmanager
def _collecting() -> Iterator[list[Kernel]]:
    _collectors.append([])
    try:
        yield _collectors[-1]
    finally:
        _collectors.pop()


def install(shim: Any, paths: tuple[str, ...]) -> None:
    """Put the kernels of all files into the device; of two for one operator the last one counts."""
    known = {name for name, _ in shim.operators()} if paths else set()
    for path in paths:
        for item in read(path):
            _check(shim, known, item, path)
            shim.overlay(item.op, _Runner(shim, item), [getattr(torch, name) for name in item.dtypes])


def _check(shim: Any, known: set[str], item: Kernel, path: str) -> None:
    unknown = [name for name in item.dtypes if name not in KNOWN_DTYPES]
    if unknown:
        raise BadInput(f"the kernel of {item.op} names the dtype {unknown[0]!r}", where=path)
    wanted = shim.schema_arguments(item.op)
    if wanted is None:
        raise BadInput(f"PyTorch has no operator {item.op!r}", where=path, hint="names look like aten::add.Tensor")
    if item.op not in known:
        raise BadInput(f"{item.op} never reaches the device: it is composed of other operators", where=path)
    code = getattr(item.function, "__code__", None)
    if code is not None and not code.co_flags & 0x04 and code.co_argcount != wanted:
        raise BadInput(f"{item.op} has {wanted} arguments, its kernel takes {code.co_argcount}", where=path)


class _Runner:
    """Calls an overlay's function on device tensors, watching for what it computes on the host."""

    def __init__(self, shim: Any, item: Kernel) -> None:
        self._shim = shim
        self._item = item

    def __call__(self, call: Any) -> Any:
        with _Watch(self._shim):
            return self._item.function(*call.args)


class _Watch(TorchDispatchMode):
    """Counts every operator on host tensors; those on device tensors the device counts itself."""

    def __init__(self, shim: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._shim = shim

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        result = func(*args, **(kwargs or {}))
        host = [leaf for leaf in tree_leaves((args, kwargs, result)) if _computes_on_host(leaf)]
        if host and not any(_on_device(leaf) for leaf in tree_leaves((args, kwargs, result))):
            moved = sum(tensor.numel() * tensor.itemsize for tensor in host)
            self._shim.note_fallback(func.name(), host[0].dtype, moved)
        return result


def _computes_on_host(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) and leaf.device.type == "cpu" and leaf.dim() > 0


def _on_device(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) and leaf.device.type == "neuron"
