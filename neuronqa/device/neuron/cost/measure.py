"""Goes through one training step of a model on the meta device, and adds up what it would take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from neuronqa.device.neuron.cost.engines import Engine
from neuronqa.device.neuron.cost.estimate import Cost
from neuronqa.device.neuron.cost.graphs import of_call, total
from neuronqa.device.neuron.cost.size import Demand
from neuronqa.device.neuron.profile import Hardware

ACTIVATIONS: Final = "activations"


def demand(model: nn.Module, inputs: Mapping[str, Any] | None, hardware: Hardware) -> Demand:
    """The demand of `model`, which is on the meta device, with `inputs` there too; None where none are known.

    A model whose forward asks for a value has none on the meta device: it is then partial, as without inputs.
    """
    weights = _nbytes(model.parameters())
    buffers = _nbytes(model.buffers())
    step = None if inputs is None else _step(model, inputs, hardware)
    if step is None:
        return Demand(
            weights=weights, buffers=buffers, activations=0, operators=0, instructions=0, partial=(ACTIVATIONS,)
        )
    kept, forward, backward = step
    graphs = [total(forward), total(backward)]
    return Demand(
        weights=weights,
        buffers=buffers,
        activations=kept,
        operators=max(graph.operators for graph in graphs),
        instructions=max(graph.instructions for graph in graphs),
    )


def _step(model: nn.Module, inputs: Mapping[str, Any], hardware: Hardware) -> tuple[int, list[Cost], list[Cost]] | None:
    """Bytes kept between forward and backward, and the costs of both."""
    own = {tensor.untyped_storage()._cdata for tensor in (*model.parameters(), *model.buffers())}
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            kept[storage._cdata] = tensor  # held, so that no other storage takes its place
        return tensor

    forward, backward = _Costs(hardware), _Costs(hardware)
    try:
        with forward, saved_tensors_hooks(keep, lambda tensor: tensor):
            results = model(**inputs)
        roots = [leaf for leaf in tree_leaves(dict(results)) if isinstance(leaf, Tensor) and leaf.requires_grad]
        with backward:
            torch.autograd.backward(roots, [torch.empty_like(root) for root in roots])
    except Exception:  # noqa: BLE001  a model may do anything; what asks for values cannot be gone through
        return None
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values()), forward.found, backward.found


class _Costs(TorchDispatchMode):
    """The cost of every operator."""

    def __init__(self, hardware: Hardware) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._hardware = hardware
        self.found: list[Cost] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        cost = of_call(func, (args, kwargs), result, self._hardware)
        if cost.engine is not Engine.NONE:
            self.found.append(cost)
        return result


def _nbytes(tensors: Any) -> int:
    return sum(tensor.numel() * tensor.itemsize for tensor in tensors)
