"""Arguments of an operator as JSON and plain arrays, memory layout included, so that a call can be made elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from neuronqa.fixqueue.kinds import Route

Arrays = dict[str, np.ndarray[Any, Any]]

ROWS: Final = 64
"""Of :attr:`Route.AMONG`: no vector loop takes more elements at a time."""
_PADDING: Final = 7919
"""Lies between the elements of what is not contiguous, for a kernel that reads past them to trip over."""
_HALVES: Final = (torch.bfloat16, torch.float16)
_SPECIAL: Final = (torch.dtype, torch.layout, torch.memory_format)


class NotPortable(Exception):
    """An argument that has no plain form: a generator, a complex or sparse tensor."""


class Packer:
    """Turns arguments into JSON and collects their arrays. The same tensor twice stays the same tensor."""

    def __init__(self, arrays: Arrays, prefix: str) -> None:
        self._arrays = arrays
        self._prefix = prefix
        self._names: dict[int, Any] = {}
        self._kept: list[Tensor] = []

    def pack(self, value: Any) -> Any:
        """Raises NotPortable."""
        match value:
            case Tensor():
                return self._tensor(value)
            case None | bool() | str() | int():
                return value
            case float():
                return value if math.isfinite(value) else {"float": str(value)}
            case list() | tuple() | torch.Size():
                return [self.pack(part) for part in value]
            case torch.device():
                return {"device": True}
            case _ if isinstance(value, _SPECIAL):
                return {"torch": str(value).removeprefix("torch.")}
            case _:
                raise NotPortable(type(value).__name__)

    def _tensor(self, value: Tensor) -> Any:
        if value.layout is not torch.strided or value.is_complex() or value.is_quantized:
            raise NotPortable(str(value.dtype))
        if id(value) not in self._names:
            name = f"{self._prefix}{len(self._names)}"
            self._kept.append(value)
            self._arrays[name] = host(value)
            self._names[id(value)] = {
                "tensor": name,
                "dtype": str(value.dtype).removeprefix("torch."),
                "size": list(value.shape),
                "stride": list(value.stride()),
                "offset": value.storage_offset(),
                "grad": value.requires_grad,
            }
        return self._names[id(value)]


def host(value: Tensor) -> np.ndarray[Any, Any]:
    """The values as an array; half precision as float32, which holds them exactly."""
    plain = value.detach().cpu()
    plain = plain.float() if plain.dtype in _HALVES else plain
    return np.array(plain.contiguous().numpy())


def tensors_of(call: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What is said of each tensor among the arguments of a packed call."""
    rest: list[Any] = [call["args"], *call["kwargs"].values()]
    while rest:
        value = rest.pop()
        if isinstance(value, list):
            rest += value
        elif isinstance(value, dict) and "tensor" in value:
            yield value


class Unpacker:
    """Makes the arguments of one call again, on `device`, for one of the ways there are."""

    def __init__(
        self, arrays: Mapping[str, Any], device: str, route: Route = Route.PLAIN, *, scalars: bool = False
    ) -> None:
        """`scalars`: no tensor of the call has a dimension."""
        self._arrays = arrays
        self._device = device
        self._route = route
        self._scalars = scalars
        self.tensors: dict[str, Tensor] = {}

    def unpack(self, value: Any) -> Any:
        match value:
            case {"tensor": str(name)}:
                if name not in self.tensors:
                    self.tensors[name] = self._tensor(value)
                return self.tensors[name]
            case {"float": str(text)}:
                return float(text)
            case {"torch": str(text)}:
                return self._special(text)
            case {"device": True}:
                return torch.device(self._device)
            case list():
                return [self.unpack(part) for part in value]
            case _:
                return value

    def _special(self, text: str) -> Any:
        value = getattr(torch, text)
        wide = self._route is Route.DOUBLE and isinstance(value, torch.dtype) and value.is_floating_point
        return torch.float64 if wide else value

    def _tensor(self, said: Mapping[str, Any]) -> Tensor:
        values = torch.from_numpy(np.array(self._arrays[said["tensor"]])).to(getattr(torch, said["dtype"]))
        if self._route is Route.DOUBLE and values.is_floating_point():
            values = values.double()
        step = 2 if self._route is Route.APART else 1
        stride, offset = [step * one for one in said["stride"]], step * said["offset"]
        placed = laid_out(values, said["size"], stride, offset, self._device)
        if self._route is Route.AMONG and (placed.dim() or self._scalars):
            placed = placed.repeat(ROWS, *[1] * placed.dim())
        return placed.detach().requires_grad_(bool(said["grad"]))


def laid_out(values: Tensor, size: list[int], stride: list[int], offset: int, device: str = "cpu") -> Tensor:
    """`values` in memory as `stride` and `offset` say. A stride of 0 repeats what lies at index 0."""
    span = offset + (1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True)) if values.numel() else 0)
    padding = 1 if values.dtype == torch.bool else _PADDING % 127 if not values.is_floating_point() else _PADDING
    memory = torch.full((span + 3,), padding, dtype=values.dtype)
    written = [1 if step == 0 and n else n for n, step in zip(size, stride, strict=True)]
    source = values[tuple(slice(0, n) for n in written)] if values.dim() else values
    memory.as_strided(written, stride, offset).copy_(source)
    return memory.to(device).as_strided(size, stride, offset)
