"""Nested inputs and outputs, to and from flat names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neuronqa.worker.exchange import Arrays

Leaf = Tensor | bool | int | float
_PLAIN = (str, bytes, type(None), torch.dtype, torch.device)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Leaf]]:
    """Yield every tensor and number below `value` with its dotted path, in the order the model returned them.

    Enters mappings, sequences, dataclasses and plain objects (a key-value cache); each object once.
    """
    yield from _leaves(value, path, set())


def _leaves(value: Any, path: str, seen: set[int]) -> Iterator[tuple[str, Leaf]]:
    if isinstance(value, Tensor | bool | int | float):
        yield path, value
        return
    if isinstance(value, _PLAIN) or callable(value) or id(value) in seen:
        return
    seen.add(id(value))
    for key, item in _children(value):
        yield from _leaves(item, f"{path}.{key}" if path else key, seen)


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((str(key), item) for key, item in value.items())
    elif isinstance(value, list | tuple):
        yield from ((str(index), item) for index, item in enumerate(value))
    elif is_dataclass(value):
        yield from ((field.name, getattr(value, field.name)) for field in fields(value))
    elif hasattr(value, "__dict__"):
        yield from vars(value).items()


def replace_tensors(value: Any, change: Any) -> Any:
    """Copy nested dicts, lists and tuples, with `change(tensor)` for every tensor."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, Mapping):
        return {key: replace_tensors(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [replace_tensors(item, change) for item in value]
    if isinstance(value, tuple):
        return tuple(replace_tensors(item, change) for item in value)
    return value


def to_array(leaf: Leaf) -> tuple[np.ndarray[Any, Any], str]:
    """Return a NumPy array that holds exactly what `leaf` holds, and the name of the leaf's own dtype.

    Half-precision floats NumPy lacks are widened to float32; a complex number becomes a pair in a last dimension.
    """
    if not isinstance(leaf, Tensor):
        return np.asarray(leaf), f"python:{type(leaf).__name__}"
    dtype = str(leaf.dtype).removeprefix("torch.")
    tensor = leaf.detach()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    tensor = tensor.cpu().resolve_conj().resolve_neg()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    if tensor.is_floating_point() and tensor.dtype not in (torch.float32, torch.float64):
        tensor = tensor.float()
    return tensor.numpy(), dtype


def pack(inputs: Mapping[str, Any]) -> tuple[str, Arrays]:
    """Return the JSON skeleton of nested inputs and their tensors. :func:`unpack` reads them back."""
    arrays: Arrays = {}

    def skeleton(value: Any) -> Any:
        if isinstance(value, Tensor):
            array, dtype = to_array(value)
            name = str(len(arrays))
            arrays[name] = array
            return {"tensor": name, "dtype": dtype}
        if isinstance(value, torch.dtype):
            return {"torch": str(value).removeprefix("torch.")}
        if isinstance(value, Mapping):
            return {"dict": [[key, skeleton(item)] for key, item in value.items()]}
        if isinstance(value, list | tuple):
            return {"list" if isinstance(value, list) else "tuple": [skeleton(item) for item in value]}
        return {"plain": value}

    return json.dumps(skeleton(dict(inputs))), arrays


def unpack(text: str, arrays: Arrays) -> dict[str, Any]:
    """Undo :func:`pack`, bit for bit."""

    def build(node: dict[str, Any]) -> Any:
        match node:
            case {"tensor": name, "dtype": dtype}:
                tensor = torch.from_numpy(arrays[name].copy())
                kind = getattr(torch, dtype)
                return torch.view_as_complex(tensor).to(kind) if kind.is_complex else tensor.to(kind)
            case {"torch": name}:
                return getattr(torch, name)
            case {"dict": items}:
                return {key: build(item) for key, item in items}
            case {"list": items}:
                return [build(item) for item in items]
            case {"tuple": items}:
                return tuple(build(item) for item in items)
            case _:
                return node["plain"]

    result = build(json.loads(text))
    return dict(result)
