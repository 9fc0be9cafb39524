"""One call of an operator on either side: the same code on the CPU, by every route, and on the device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from neuronqa.fixqueue.child.capture import overload
from neuronqa.fixqueue.child.layout import Unpacker, tensors_of
from neuronqa.fixqueue.kinds import Route


@dataclass
class Seen:
    """What a call gave: results, arguments that it wrote into, gradients; by name."""

    values: dict[str, Any] = field(default_factory=dict)
    gradients: dict[str, Tensor | None] = field(default_factory=dict)
    aliases: list[bool] = field(default_factory=list)
    """Per result: does it share memory with an argument?"""
    changed: list[str] = field(default_factory=list)
    """Arguments that its schema says it leaves alone, and that it wrote into. Batch norm does so on the CPU too."""


class Execution:
    """A call that is made ready on `device`, then run, then differentiated."""

    def __init__(
        self, call: Mapping[str, Any], arrays: Mapping[str, Any], device: str, route: Route = Route.PLAIN
    ) -> None:
        self._call = call
        self._function = overload(call["op"])
        unpacker = Unpacker(arrays, device, route, scalars=not any(said["size"] for said in tensors_of(call)))
        self._args = tuple(unpacker.unpack(call["args"]))
        self._kwargs = {name: unpacker.unpack(value) for name, value in call["kwargs"].items()}
        self.tensors = dict(unpacker.tensors)
        self._cotangents = [unpacker.unpack(one) for one in call.get("cotangents", ())]
        self._before = {name: tensor.detach().clone() for name, tensor in self.tensors.items()}
        self._result: Any = None

    def forward(self) -> Seen:
        torch.manual_seed(int(self._call["seed"]))
        self._result = self._function(*self._args, **self._kwargs)
        leaves = tree_leaves(self._result)
        seen = Seen({f"r{at}": leaf for at, leaf in enumerate(leaves)})
        written = self._written()
        seen.values |= {f"m{at}": tensor for at, tensor in enumerate(written.values())}
        memories = {_memory(tensor) for tensor in self.tensors.values()}
        seen.aliases = [isinstance(leaf, Tensor) and _memory(leaf) in memories for leaf in leaves]
        seen.changed = [
            name
            for name, tensor in self.tensors.items()
            if name not in written and not _same(tensor.detach(), self._before[name])
        ]
        seen.values |= {f"w{at}": self.tensors[name] for at, name in enumerate(seen.changed)}
        return seen

    def differentiable(self) -> list[Tensor]:
        """The results that a gradient flows back from."""
        leaves = [leaf for leaf in tree_leaves(self._result) if isinstance(leaf, Tensor)]
        return [leaf for leaf in leaves if leaf.requires_grad]

    def take(self, cotangents: list[Tensor]) -> None:
        """What flows back into the differentiable results."""
        self._cotangents = cotangents

    def backward(self) -> dict[str, Tensor | None]:
        roots, given = self.differentiable(), self._cotangents
        wanted = {name: tensor for name, tensor in self.tensors.items() if tensor.requires_grad}
        found = torch.autograd.grad(roots, list(wanted.values()), given, allow_unused=True)
        return {f"g{at}": one for at, one in enumerate(found)}

    def _written(self) -> dict[str, Tensor]:
        """The arguments that the schema says are written into."""
        arguments = self._function._schema.arguments
        named = {one.name: one for one in arguments}
        pairs = [
            *zip(arguments, self._args, strict=False),
            *((named[key], value) for key, value in self._kwargs.items()),
        ]
        written = {
            id(leaf)
            for argument, value in pairs
            if argument.alias_info is not None and argument.alias_info.is_write
            for leaf in tree_leaves(value)
        }
        return {name: tensor for name, tensor in self.tensors.items() if id(tensor) in written}


def writes(op: str) -> bool:
    """Does the operator write into an argument?"""
    return any(one.alias_info is not None and one.alias_info.is_write for one in overload(op)._schema.arguments)


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr() or id(tensor)


def _same(one: Tensor, other: Tensor) -> bool:
    one, other = one.cpu(), other.cpu()
    return torch.equal(one, other) or bool(torch.allclose(one.double(), other.double(), rtol=0, atol=0, equal_nan=True))
