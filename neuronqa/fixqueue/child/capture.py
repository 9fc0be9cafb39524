"""Real calls of an operator: what PyTorch's own operator tests make it do, forward and backward, on the CPU."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_any, tree_leaves, tree_map

from neuronqa.fixqueue.policy import kin

SAMPLES: Final = 24
"""Of one entry of PyTorch's tests."""
ELEMENTS: Final = 1 << 16
"""Of one argument: a larger one shows nothing that a smaller one does not."""
_SIZE: Final = (3, 4)


@dataclass(frozen=True)
class Made:
    """The arguments of one call; its tensors belong to nobody else."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def tensors(self) -> list[Tensor]:
        return [leaf for leaf in tree_leaves((self.args, self.kwargs)) if isinstance(leaf, Tensor)]

    @property
    def shape(self) -> tuple[Any, ...]:
        """What makes two calls alike: sizes of the tensors, and every other argument."""
        return tuple(
            tuple(leaf.shape) if isinstance(leaf, Tensor) else str(leaf)
            for leaf in tree_leaves((self.args, self.kwargs))
        )


class _Listening(TorchDispatchMode):
    """Keeps copies of the arguments of every call of `op`."""

    def __init__(self, op: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._op = op
        self.heard: list[Made] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        if func.name() == self._op and not tree_any(_too_large, (args, kwargs)):
            args_, kwargs_ = tree_map(_copied, (args, kwargs or {}))
            self.heard.append(Made(tuple(args_), kwargs_))
        return func(*args, **(kwargs or {}))


def calls(op: str, generator: random.Random) -> list[Made]:
    """Calls of `op` in float32, each with other shapes or arguments, in a drawn order; few or none for what no test
    of PyTorch's reaches.
    """
    found: dict[tuple[Any, ...], Made] = {}
    for made in itertools.chain(_heard(op), _guessed(op)):
        found.setdefault(made.shape, made)
    several = list(found.values())
    generator.shuffle(several)
    return several


def overload(op: str) -> Any:
    """`aten::div.Tensor_mode` as a function."""
    name, _, kind = op.removeprefix("aten::").partition(".")
    return getattr(getattr(torch.ops.aten, name), kind or "default")


def _heard(op: str) -> Iterator[Made]:
    for entry in _entries(op):
        listening = _Listening(op)
        samples = entry.sample_inputs("cpu", torch.float32, requires_grad=entry.supports_autograd)
        try:
            for sample in itertools.islice(samples, SAMPLES):
                with listening:
                    _play(entry, sample)
        except Exception:  # noqa: BLE001  a test that cannot be made is one source less
            pass
        yield from listening.heard


def _play(entry: Any, sample: Any) -> None:
    result = entry.op(sample.input, *sample.args, **sample.kwargs)
    roots = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor) and leaf.requires_grad]
    wanted = [leaf for leaf in tree_leaves((sample.input, sample.args)) if isinstance(leaf, Tensor)]
    wanted = [leaf for leaf in wanted if leaf.requires_grad]
    if roots and wanted:
        torch.autograd.grad(roots, wanted, [torch.randn_like(root) for root in roots], allow_unused=True)


def _entries(op: str) -> list[Any]:
    """PyTorch's tests of operators of the same kin; none where its test helpers are not installed."""
    try:
        from torch.testing._internal.common_methods_invocations import op_db
    except ImportError:
        return []
    family = kin(op)
    names = ((entry, {entry.name.rpartition(".")[2], entry.aten_name or ""}) for entry in op_db)
    return [
        entry
        for entry, known in names
        if any(kin(name) == family for name in known if name) and torch.float32 in entry.supported_dtypes("cpu")
    ]


def _guessed(op: str) -> Iterator[Made]:
    """Arguments made of the schema alone: good for whatever takes tensors of one shape, and numbers."""
    schema = overload(op)._schema
    for size in ((), (5,), _SIZE, (2, 3, 4), (2, 1, 5, 3), (130, 3)):
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for argument in schema.arguments:
            value = argument.default_value if argument.has_default_value() else _value(str(argument.type), size)
            if argument.kwarg_only:
                kwargs[argument.name] = value
            else:
                args.append(value)
        yield Made(tuple(args), kwargs)


def _value(kind: str, size: tuple[int, ...]) -> Any:
    match kind:
        case "Tensor":
            return torch.randn(size)
        case "number":
            return 1.25
        case "float":
            return 0.5
        case "int" | "SymInt":
            return 0
        case "bool":
            return False
        case "List[Tensor]":
            return [torch.randn(size), torch.randn(size)]
        case "List[int]" | "List[SymInt]":
            return list(size)
        case _:
            return None


def _copied(leaf: Any) -> Any:
    return leaf.detach().clone() if isinstance(leaf, Tensor) else leaf


def _too_large(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) and leaf.numel() > ELEMENTS
