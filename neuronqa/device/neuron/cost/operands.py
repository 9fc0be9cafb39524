"""Tensors, fake or real, as the cost model sees them."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from neuronqa.device.neuron.cost.estimate import Operand


def operands(value: Any) -> list[Operand]:
    """Every tensor in `value`, in order."""
    return [
        Operand(tuple(int(size) for size in leaf.shape), str(leaf.dtype).removeprefix("torch."))
        for leaf in tree_leaves(value)
        if isinstance(leaf, torch.Tensor)
    ]
