"""The same inputs in other sizes: one row alone, and lengths on either side of where devices cut sequences into tiles.

A kernel that is right at 16 tokens may forget the last row of the second tile; a batch of one may take another path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor, nn

from neuronqa.worker.trees import replace_tensors

LENGTHS: Final = (127, 128, 129, 511, 512, 513)
_LIMITS: Final = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
"""What configs call the largest position they know."""

Inputs = dict[str, Any]


def resized(module: nn.Module, inputs: Mapping[str, Any]) -> Iterator[tuple[str, Inputs]]:
    """Inputs of other sizes, with a name each; none for a model that does not read tokens by rows."""
    ids = inputs.get("input_ids")
    if not isinstance(ids, Tensor) or ids.dim() != 2 or ids.shape[1] == 0:
        return
    rows, length = ids.shape
    if rows > 1:
        yield "row.0", dict(replace_tensors(inputs, lambda one: one[:1] if _has(one, 0, rows) else one))
    for wanted in LENGTHS:
        if length < wanted <= _limit(module):
            yield f"length.{wanted}", dict(replace_tensors(inputs, partial(_stretched, length=length, wanted=wanted)))


def _stretched(one: Tensor, *, length: int, wanted: int) -> Tensor:
    """Repeated along the tokens and cut; what does not go by tokens stays."""
    if not _has(one, 1, length):
        return one
    place = torch.arange(wanted, device=one.device) % length
    return one.index_select(1, place)


def _has(one: Tensor, dim: int, size: int) -> bool:
    return one.dim() > dim and one.shape[dim] == size


def _limit(module: nn.Module) -> int:
    config = getattr(module, "config", None)
    known = [value for name in _LIMITS if isinstance(value := getattr(config, name, None), int)]
    return min(known, default=LENGTHS[-1])
