"""What the compiler is given before the first training step of a model of full size can end.

One step of the model with two layers and with four is gone through on the meta device; all other layers cost what the
third and fourth do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from neuronqa.device.neuron.cost.compile_time import Work
from neuronqa.device.neuron.cost.engines import Engine
from neuronqa.device.neuron.cost.estimate import Cost
from neuronqa.device.neuron.cost.graphs import of_call
from neuronqa.device.neuron.profile import Hardware

FEW: Final = 2
MORE: Final = 4

Model = tuple[nn.Module, Mapping[str, Any]]
"""A model on the meta device whose result has a loss, and its inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One training step, forward and backward."""

    eager: Work
    """Every distinct operator call, by shapes and dtypes."""
    whole: Work
    """Forward and backward as one graph each."""


def eager(model_of: Callable[[int], Model], hardware: Hardware) -> Work:
    """Every distinct call is a graph; more layers of the same shapes add none."""
    return step(*model_of(FEW), hardware).eager


def compiled(model_of: Callable[[int], Model], distinct_blocks: int, hardware: Hardware) -> tuple[Work, Work]:
    """Block by block, as trainers compile: forward and backward of each distinct block, and what is outside eagerly.

    Returns all of it, and one block.
    """
    few, more = (step(*model_of(layers), hardware).whole for layers in (FEW, MORE))
    block = Work(
        graphs=few.graphs,
        operators=(more.operators - few.operators) // (MORE - FEW),
        instructions=(more.instructions - few.instructions) // (MORE - FEW),
    )
    outside_operators = few.operators - FEW * block.operators
    whole = Work(
        graphs=distinct_blocks * block.graphs + outside_operators,
        operators=distinct_blocks * block.operators + outside_operators,
        instructions=distinct_blocks * block.instructions + few.instructions - FEW * block.instructions,
    )
    return whole, block


def step(model: nn.Module, inputs: Mapping[str, Any], hardware: Hardware) -> Step:
    """Go through one step. Raises what the model raises on the meta device."""
    calls = _Calls(hardware)
    with calls:
        model(**inputs).loss.backward()
    return Step(eager=_work(calls.distinct.values(), len(calls.distinct)), whole=_work(calls.all, 2))


def _work(costs: Iterable[Cost], graphs: int) -> Work:
    found = list(costs)
    return Work(graphs=graphs, operators=len(found), instructions=sum(cost.instructions for cost in found))


class _Calls(TorchDispatchMode):
    """The cost of every call, and of every distinct one."""

    def __init__(self, hardware: Hardware) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._hardware = hardware
        self.all: list[Cost] = []
        self.distinct: dict[tuple[Any, ...], Cost] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        cost = of_call(func, (args, kwargs), result, self._hardware)
        if cost.engine is not Engine.NONE:
            tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
            self.all.append(cost)
            self.distinct.setdefault((func, *((tuple(one.shape), one.dtype) for one in tensors)), cost)
        return result


def meta(shape: tuple[int, ...], dtype: torch.dtype = torch.long) -> Tensor:
    """A tensor without numbers."""
    return torch.empty(shape, dtype=dtype, device="meta")
