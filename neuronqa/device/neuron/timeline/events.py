"""Records a run operator by operator: its cost, whose results it uses, where it was called, and the memory in use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from neuronqa.device.dispatch import DispatchRecording
from neuronqa.device.neuron.cost.engines import Engine
from neuronqa.device.neuron.cost.estimate import Cost, Operand
from neuronqa.device.neuron.cost.graphs import of_call
from neuronqa.device.neuron.cost.operands import operands
from neuronqa.device.neuron.profile import Hardware
from neuronqa.device.outside import operator, tracing

_OURS: Final = (str(Path(torch.__file__).parent), str(Path(__file__).parents[3]), "<")
"""Files that are no source of a model's: PyTorch, NeuronQA, and generated code."""


@dataclass(frozen=True, slots=True)
class Event:
    """One operator as it was called."""

    op: str
    cost: Cost
    operands: tuple[Operand, ...]
    after: tuple[int, ...]
    """Places in the list of events whose results it uses."""
    source: str
    """`file.py:123`, or empty; of a backward operator, the line of the forward one."""
    backward: bool
    memory: int
    """Bytes of device memory in use when it was done, as the device counts them."""


class TimelineRecording(DispatchRecording):
    """Notes every operator between `start` and `stop`. Views cost nothing and are no events."""

    def __init__(self, hardware: Hardware, memory: Callable[[], int]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.events: list[Event] = []
        self._hardware = hardware
        self._memory = memory
        self._writer: dict[int, int] = {}
        self._source_of: dict[int, str] = {}

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if tracing():
            return func(*args, **kwargs)
        result = func(*args, **kwargs)
        self._note(func, (args, kwargs), result)
        return result

    def _note(self, func: Any, given: Any, result: Any) -> None:
        cost = of_call(func, given, result, self._hardware)
        read, written = _memories(given), _memories(result)
        if func._schema.is_mutable:
            written |= read
        if cost.engine is Engine.NONE:
            for memory in written - read:
                self._writer.pop(memory, None)  # new memory, maybe where something else has been
            return
        backward = torch._C._current_graph_task_id() != -1
        after = sorted({self._writer[memory] for memory in read if memory in self._writer})
        used = (*operands(given), *operands(result))
        source = self._source(backward)
        self.events.append(Event(operator(func), cost, used, tuple(after), source, backward, self._memory()))
        for memory in written:
            self._writer[memory] = len(self.events) - 1

    def _source(self, backward: bool) -> str:
        if backward:
            node = torch._C._current_autograd_node()
            return "" if node is None else self._source_of.get(node._sequence_nr(), "")
        line = calling_line()
        self._source_of.setdefault(torch._C._autograd._get_sequence_nr() - 1, line)
        return line


def calling_line() -> str:
    """The innermost line on the stack that is neither PyTorch's nor ours."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_OURS):
            return f"{Path(file).name}:{frame.f_lineno}"
        if frame.f_back is None:
            break
        frame = frame.f_back
    return ""


def _memories(value: Any) -> set[int]:
    """What tells one piece of memory from another, of every tensor in `value`."""
    return {_memory(leaf) for leaf in _tensors(value)}


def _memory(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _tensors(value: Any) -> Iterable[Tensor]:
    return (leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor) and leaf.layout is torch.strided)
