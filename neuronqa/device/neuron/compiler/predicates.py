"""Conditions over an operator's arguments that no list of dtypes can express. A profile names them in `when`.

Each takes the operator's arguments in schema order; tensors are tensors, fake or real.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from neuronqa.errors import BadInput

Predicate = Callable[[Sequence[Any], Mapping[str, Any]], bool]


def window_dilation(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """A pooling window with holes: `dilation` is the sixth argument of the backward, the fifth of the forward."""
    backward = len(args) > 1 and isinstance(args[1], torch.Tensor)
    return _any_above_one(_argument(args, kwargs, 6 if backward else 4, "dilation"))


def both_dilations(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """A convolution that dilates its input and its kernel.

    The input is dilated by the stride of a transposed convolution, and of a differentiated one.
    """
    backward = len(args) > 8 and not isinstance(args[6], bool)
    offset = 4 if backward else 3
    stride, dilation, transposed = args[offset], args[offset + 2], args[offset + 3]
    del kwargs
    return _any_above_one(dilation) and _any_above_one(stride) and bool(transposed) != backward


def boolean_index(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """`x[mask] = y`: a boolean tensor among the indices."""
    indices = _argument(args, kwargs, 1, "indices") or ()
    return any(isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8) for index in indices)


def empty_tensor(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """A tensor without elements among the arguments."""
    return any(isinstance(leaf, torch.Tensor) and leaf.numel() == 0 for leaf in tree_leaves((args, kwargs)))


def _argument(args: Sequence[Any], kwargs: Mapping[str, Any], position: int, name: str) -> Any:
    return args[position] if len(args) > position else kwargs.get(name)


def _any_above_one(sizes: Any) -> bool:
    values = [sizes] if isinstance(sizes, int) else list(sizes or ())
    return any(value > 1 for value in values)


PREDICATES: Mapping[str, Predicate] = MappingProxyType(
    {
        "window-dilation": window_dilation,
        "both-dilations": both_dilations,
        "boolean-index": boolean_index,
        "empty-tensor": empty_tensor,
    }
)


def named(name: str) -> Predicate:
    """Raises BadInput for a name no predicate has."""
    try:
        return PREDICATES[name]
    except KeyError:
        raise BadInput(f"a profile asks for the condition {name!r}", hint=f"one of {', '.join(PREDICATES)}") from None
