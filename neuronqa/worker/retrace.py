"""Is a device's step the model's own, operator by operator?

The step is run once more on the host, where every operator hands on what the device's gave. If the host then calls
the same operators with the same inputs, bit for bit, and ends with the same tensors, nothing but the operators' results
came from the device, and a step of which every operator is right is right as a whole. A model that takes another branch
on the device, and memory that changes between two operators, show here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from neuronqa.device.outside import operator
from neuronqa.domain.case import Variant
from neuronqa.domain.observation import TENSOR_FILE, Progress
from neuronqa.domain.workload import Workload
from neuronqa.worker.device_child import place, restoring
from neuronqa.worker.exchange import Arrays, read_arrays
from neuronqa.worker.executing import execute
from neuronqa.worker.reference import Build
from neuronqa.worker.training import Marks, Notes, seed_everything
from neuronqa.worker.trees import to_array

IN_STEP: Final = (Progress.FORWARD, Progress.BACKWARD)
"""The optimizer's part is judged from the gradient it is given, and devices have optimizers of their own."""
ENDS: Final = ("output/", "token/", "loss", "grad/", "buffer/")
UNDECLARED: Final = ("aten::native_batch_norm", "aten::batch_norm", "aten::_batch_norm_impl_index")
"""Operators that write running statistics without saying so in their schema."""
LIMIT: Final = 512 << 20
"""Bytes of results that are kept; a larger step is not retraced."""

Call = tuple[Any, Any]
"""Arguments by place and by name."""


class Parted(Exception):
    """The host's step is another than the device's, and where."""


@dataclass(frozen=True)
class Step:
    """One call on the device: what it was given, as a checksum, and what it left, on the host."""

    op: str
    given: int
    left: tuple[Any, ...]


class Trace:
    """The calls of a device's first step, views apart."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.lost = ""
        """Why the trace is not whole."""
        self._bytes = 0

    def note(self, func: Any, given: Call, result: Any, used: Call) -> None:
        """`given` is a copy on the host from before the call, `used` the device's own arguments after it."""
        left = tuple(_kept(leaf) for leaf in _leaves_left(func, result, used))
        self._bytes += sum(leaf.nbytes for leaf in left if isinstance(leaf, Tensor))
        if self._bytes > LIMIT:
            self.lose("its results are too large to keep")
        if not self.lost:
            self.steps.append(Step(operator(func), checksum(given), left))

    def lose(self, why: str) -> None:
        self.lost = self.lost or why
        self.steps = []


def traceable(func: Any) -> bool:
    return isinstance(func, torch._ops.OpOverload) and func._schema.name.startswith("aten::")


def is_silent(func: Any, given: Call) -> bool:
    """Views, numbers that become tensors (on the host they do so unseen), and copies that change neither type nor
    value: a move to the device, which the host has no need of. What they do wrong shows in what the next operator is
    given."""
    if func.is_view or func._schema.name == "aten::scalar_tensor":
        return True
    if func._schema.name != "aten::_to_copy":
        return False
    return given[1].get("dtype") in (None, given[0][0].dtype)


def writes(func: Any) -> bool:
    """Does it write to arguments?"""
    return bool(func._schema.is_mutable) or func._schema.name in UNDECLARED


def checksum(given: Call) -> int:
    """Of everything a call is given but the place it is to work in."""
    total = 0
    for leaf in tree_leaves(given):
        if isinstance(leaf, Tensor):
            array, dtype = to_array(leaf)
            total = crc32(np.ascontiguousarray(array).tobytes(), crc32(f"{dtype}{array.shape}".encode(), total))
        elif not isinstance(leaf, torch.device | torch.Generator):
            total = crc32(repr(leaf).encode(), total)
    return total


def retrace(trace: Trace, request: Mapping[str, Any], build: Build) -> str:
    """Run the first step on the host with the device's results, and say where the two part; empty if nowhere.

    `request` is the device's own, finished; its tensors are what the step must end with.
    """
    if trace.lost:
        return trace.lost
    variant = Variant.parse(request["variant"])
    with _disable_current_modes():
        runnable = build(Workload.from_json(request["workload"]))
        reference = Path(request["reference"])
        restore = restoring(runnable.module, reference)
        _, subject = place(runnable, variant, reference, restore, torch.device("cpu"))
        marks = Marks(lambda _: None)
        follower = _Follower(trace, marks)
        notes = Notes(parameter_names=(), aside=follower.paused)
        seed_everything()
        try:
            with _same_attention(trace), follower:
                execute(subject, variant.phase, 1, notes, marks)
            return follower.rest() or _difference(notes.arrays, read_arrays(Path(request["out"]) / TENSOR_FILE))
        except Parted as parted:
            return str(parted)
        except Exception as error:  # noqa: BLE001 - what the device could do the host may refuse
            return f"the host's step ends in {type(error).__name__}: {error}"[:200]


class _Follower(TorchDispatchMode):
    """Runs each operator on the host, checks that it is the device's next, and hands on what the device's left."""

    def __init__(self, trace: Trace, mark: Marks) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._steps = trace.steps
        self._mark = mark
        self._position = 0

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        try:
            yield
        finally:
            self.__enter__()  # type: ignore[no-untyped-call]

    def rest(self) -> str:
        if self._position == len(self._steps):
            return ""
        return f"the device's step goes on with {self._steps[self._position].op} where the host's ends"

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        call = (args, kwargs or {})
        if self._mark.current not in IN_STEP or is_silent(func, call):
            return func(*args, **call[1])
        step = self._next(func)
        with _disable_current_modes():
            if checksum(call) != step.given:
                raise Parted(
                    f"call {self._position}, {step.op}, is given something else on the device than on the host"
                )
            result = func(*args, **call[1])
            return _handed_on(func, result, call, step)

    def _next(self, func: Any) -> Step:
        name = operator(func)
        if self._position == len(self._steps):
            raise Parted(f"the host's step goes on with {name} where the device's ends")
        step = self._steps[self._position]
        self._position += 1
        if step.op != name:
            raise Parted(f"call {self._position} is {step.op} on the device and {name} on the host")
        return step


def _handed_on(func: Any, result: Any, call: Call, step: Step) -> Any:
    """`result` with the device's values in it; arguments that were written get them too."""
    returned, structure = tree_flatten(result)
    left = iter(step.left)
    if len(list(_leaves_left(func, result, call))) != len(step.left):
        raise Parted(f"{step.op} returns something else on the device")
    arguments = {id(leaf) for leaf in tree_leaves(call)}
    forced = [_forced(leaf, next(left), in_place=id(leaf) in arguments) for leaf in returned]
    for leaf, value in zip(_leaves_left(func, (), call), left, strict=True):
        _forced(leaf, value, in_place=True)
    return tree_unflatten(forced, structure)


def _forced(leaf: Any, value: Any, *, in_place: bool) -> Any:
    if not isinstance(leaf, Tensor) or not isinstance(value, Tensor):
        return value
    if leaf.shape != value.shape or leaf.dtype != value.dtype:
        raise Parted(
            f"{tuple(value.shape)} {value.dtype} on the device is {tuple(leaf.shape)} {leaf.dtype} on the host"
        )
    if not in_place:
        return value.clone()
    return leaf if torch.equal(leaf, value) else leaf.copy_(value)


def _leaves_left(func: Any, result: Any, used: Call) -> Iterator[Any]:
    yield from tree_leaves(result)
    if writes(func):
        yield from (leaf for leaf in tree_leaves(used) if isinstance(leaf, Tensor))


def _kept(leaf: Any) -> Any:
    return leaf.detach().to("cpu", copy=True) if isinstance(leaf, Tensor) else leaf


def _same_attention(trace: Trace) -> Any:
    """Which attention the host takes is its own choice, and a matter of speed: take the device's."""
    fused = any("scaled_dot_product" in step.op for step in trace.steps)
    return nullcontext() if fused else sdpa_kernel(SDPBackend.MATH)


def _difference(host: Arrays, device: Arrays) -> str:
    for name, array in host.items():
        other = device.get(name)
        if name.startswith(ENDS) and (other is None or not np.array_equal(array, other, equal_nan=True)):
            return f"{name} is not what the operators left in it"
    return ""
