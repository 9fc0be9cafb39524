"""The search for the first deviation: a device child that checks every operator against the host as it goes.

Each operator's own inputs are brought to the host and the operator is run there, in the same dtype and in float64, so
that an operator is judged by what it was given and not by what went wrong before it. What it finds names the cause of a
failed parity; whether parity failed is not its question.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map

from neuronqa.checks import operators
from neuronqa.checks.tensors import Exempt, Measured
from neuronqa.device.dispatch import DispatchRecording
from neuronqa.device.outside import operator, tracing
from neuronqa.device.protocol import Adapter, Device, Recording
from neuronqa.domain.case import Dtype
from neuronqa.domain.observation import MEMORY, Deviation, Observation, Progress
from neuronqa.domain.outcome import Kind
from neuronqa.domain.policy import Thresholds
from neuronqa.worker import device_child
from neuronqa.worker.choosing import RANKING, choices, ranked
from neuronqa.worker.continuity import Continuity
from neuronqa.worker.device_child import Watching
from neuronqa.worker.oracle import WIDE
from neuronqa.worker.reference import Build
from neuronqa.worker.retrace import IN_STEP, Call, Trace, is_silent, retrace, traceable, writes
from neuronqa.worker.training import Marks
from neuronqa.worker.trees import to_array

_UNDETERMINED: Final = frozenset(
    {
        "aten::bernoulli",
        "aten::bernoulli_",
        "aten::cauchy_",
        "aten::exponential_",
        "aten::geometric_",
        "aten::log_normal_",
        "aten::multinomial",
        "aten::native_dropout",
        "aten::normal",
        "aten::normal_",
        "aten::poisson",
        "aten::rand",
        "aten::rand_like",
        "aten::randint",
        "aten::randint_like",
        "aten::randn",
        "aten::randn_like",
        "aten::random_",
        "aten::randperm",
        "aten::uniform_",
        "aten::empty",
        "aten::empty_like",
        "aten::empty_strided",
        "aten::new_empty",
        "aten::new_empty_strided",
        "aten::resize_",
        "aten::set_",
    }
)
"""Operators whose result their inputs do not determine."""
_CASE_DTYPES: Final = {torch.float32: Dtype.FP32, torch.bfloat16: Dtype.BF16}
_DECIDED: Final = (None, Exempt.EMPTY, Exempt.ZERO)
"""A result of nothing, or of zeros, decides: anything else in its place is wrong."""
SECONDS: Final = 20.0


def search(
    request: Mapping[str, Any],
    build: Build,
    adapter: Callable[[str], Adapter],
    emit: Callable[[Progress], None],
) -> None:
    """Run what a device request asks for under a :class:`Search`; leaves an observation with `deviations`.

    `request["seconds"]`: after so long it only runs on, so that what was found is not lost to a deadline.
    """
    seconds = float(request.get("seconds", SECONDS))
    thresholds = Thresholds(**request["thresholds"])

    def follow(trace: Trace) -> str:
        return retrace(trace, request, build)

    device_child.observe(request, build, adapter, emit, _Searching(thresholds, seconds, follow))


class _Searching(Watching):
    repeats = False

    def __init__(self, thresholds: Thresholds, seconds: float, follow: Callable[[Trace], str]) -> None:
        self._thresholds = thresholds
        self._seconds = seconds
        self._follow = follow
        self._search: Search | None = None

    def recording(self, device: Device, mark: Marks) -> Recording:
        device.recording()  # A device may arm there what it was ordered to.
        self._search = Search(device.torch_device, self._thresholds, mark, self._seconds)
        return self._search

    def report(self, observation: Observation) -> Observation:
        found = self._search
        if found is None:
            return replace(observation, role="deviation")
        eager = observation.graph is None
        in_question = eager and observation.reached is Progress.DONE and not found.deviations()
        return replace(
            observation,
            role="deviation",
            deviations=found.deviations(),
            searched=found.searched,
            decided=found.decided,
            choices=found.choices,
            open_choices=found.open_choices,
            unanswered=found.unanswered,
            parted=self._follow(found.trace) if in_question else observation.parted,
        )


class Search(DispatchRecording):
    """Compares every call as it passes. A recording like a device's own, so that it pauses with the harness."""

    supports_higher_order_operators = True

    def __init__(self, device: torch.device, thresholds: Thresholds, mark: Marks, seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._device = device
        self._thresholds = thresholds
        self._mark = mark
        self._until = time.monotonic() + seconds
        self._found: dict[tuple[str, str], Deviation] = {}
        self._calls: Counter[tuple[str, str]] = Counter()
        self._continuity = Continuity()
        self.trace = Trace()
        self.searched = self.decided = self.unanswered = self.choices = self.open_choices = 0

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if tracing():
            return func(*args, **kwargs)
        used = (args, kwargs)
        answerable, traced = self._answerable(func, args, kwargs), self._traced(func, used)
        if time.monotonic() > self._until:
            self.unanswered += answerable
            self.trace.lose("the time was up")
            return func(*args, **kwargs)
        with _disable_current_modes():
            given = tree_map(_to_host, used) if answerable or traced else None
            if given is not None and answerable:
                self._check_continuity(used)
        result = func(*args, **kwargs)
        with _disable_current_modes():
            if given is not None and answerable:
                self._compare(func, given, result, used)
            if given is not None and traced:
                self.trace.note(func, given, result, used)
            if not func.is_view:
                written = (result, used) if writes(func) else result
                self._continuity.left(leaf for leaf in tree_leaves(written) if self._here(leaf))
        return result

    def deviations(self) -> tuple[Deviation, ...]:
        """In the order of their first wrong calls."""
        ordered = sorted(self._found.items(), key=lambda item: item[1].position)
        return tuple(replace(one, calls=self._calls[key]) for key, one in ordered)

    def _traced(self, func: Any, used: Call) -> bool:
        if self._mark.current not in IN_STEP or self.trace.lost:
            return False
        if not traceable(func):
            self.trace.lose(f"{func} is no operator of its own")
            return False
        return not is_silent(func, used)

    def _here(self, leaf: Any) -> bool:
        return isinstance(leaf, Tensor) and leaf.device.type == self._device.type and leaf.layout is torch.strided

    def _check_continuity(self, used: Call) -> None:
        broken = self._continuity.broken(leaf for leaf in tree_leaves(used) if self._here(leaf))
        if broken is None:
            return
        dtype = str(broken.dtype).removeprefix("torch.")
        known = self._found.get((MEMORY, dtype))
        if known is not None:
            self._found[MEMORY, dtype] = replace(known, wrong=known.wrong + 1)
            return
        self._found[MEMORY, dtype] = Deviation(
            op=MEMORY,
            dtype=dtype,
            position=self.searched + 1,
            kind=Kind.PARITY_SCATTER.value,
            ratio=float("inf"),
            progress=self._mark.current,
            shapes=(tuple(broken.shape),),
            words="not what the operator that made it left in it",
        )

    def _answerable(self, func: Any, args: Any, kwargs: Any) -> bool:
        if not isinstance(func, torch._ops.OpOverload) or not func._schema.name.startswith("aten::"):
            return False
        if func.is_view or func._schema.name in _UNDETERMINED:
            return False
        device = kwargs.get("device")
        if device is not None and torch.device(device).type == self._device.type:
            return True
        return any(self._here(leaf) for leaf in tree_leaves((args, kwargs)))

    def _compare(self, func: Any, given: Call, result: Any, used: Call) -> None:
        measured = list(self._measured(func, given, result, used))
        if not measured:
            self.unanswered += 1
            return
        self.searched += 1
        self.decided += all(one.yardstick.exempt in _DECIDED for one in measured)
        made, open_ = choices(func, given)
        self.choices, self.open_choices = self.choices + made, self.open_choices + open_
        tensors = [leaf for leaf in tree_leaves(used) if isinstance(leaf, Tensor)]
        dtype = str(tensors[0].dtype).removeprefix("torch.") if tensors else ""
        key = (operator(func), dtype)
        self._calls[key] += 1
        worst = max(measured, key=lambda one: one.ratio)
        if worst.kind is None:
            return
        known = self._found.get(key)
        if known is not None:
            self._found[key] = replace(known, wrong=known.wrong + 1, ratio=max(known.ratio, worst.ratio))
            return
        self._found[key] = Deviation(
            op=key[0],
            dtype=dtype,
            position=self.searched,
            kind=worst.kind.value,
            ratio=worst.ratio,
            progress=self._mark.current,
            shapes=tuple(tuple(t.shape) for t in tensors),
            strides=tuple(tuple(t.stride()) for t in tensors if t.layout is torch.strided),
            words=worst.note or f"off by {worst.error:.3g} where the scale is {worst.yardstick.scale:.3g}",
        )

    def _measured(self, func: Any, given: Call, result: Any, used: Call) -> Iterator[Measured]:
        """One measurement for each tensor the call returned, and for each it was given, which it may have changed."""
        same_call = tree_map(_clone, given)
        try:
            same = func(*same_call[0], **same_call[1])
        except Exception:  # noqa: BLE001 - what the host cannot do it cannot check
            return
        wide, wide_call = _in_float64(func, given) or (same, same_call)
        aliases = {id(leaf) for leaf in tree_leaves(used)}
        ranking = func._schema.name in RANKING
        triples = (
            *zip(tree_leaves(result), tree_leaves(same), tree_leaves(wide), strict=True),
            *zip(tree_leaves(used), tree_leaves(same_call), tree_leaves(wide_call), strict=True),
        )
        returned = len(tree_leaves(result))
        for place, (found, host, truth) in enumerate(triples):
            returned_again = place < returned and id(found) in aliases
            if isinstance(found, Tensor) and isinstance(host, Tensor) and not returned_again:
                indices = ranking and place == returned - 1
                yield self._one(*(ranked(func, given, found, host) if indices else (found, host, truth)))
            elif place < returned and isinstance(found, bool | int | float) and isinstance(host, bool | int | float):
                yield self._one(torch.tensor(found), torch.tensor(host), torch.tensor(truth))

    def _one(self, found: Tensor, host: Tensor, truth: Tensor) -> Measured:
        dtype = _CASE_DTYPES.get(host.dtype, Dtype.FP32)
        device, same, oracle = (to_array(value)[0] for value in (found, host, truth))
        return operators.compare(device, same, oracle, dtype, self._thresholds)


def _in_float64(func: Any, given: Call) -> tuple[Any, Call] | None:
    """The call in float64 and its arguments after it, or None where the operator has no such kernel."""
    args, kwargs = tree_map(_wide_copy, given)
    if kwargs.get("dtype") in WIDE:
        kwargs = {**kwargs, "dtype": WIDE[kwargs["dtype"]]}
    try:
        return func(*args, **kwargs), (args, kwargs)
    except RuntimeError:
        return None


def _to_host(value: Any) -> Any:
    """A copy on the host with the same strides, so that what depends on the layout is asked of the same layout."""
    if not isinstance(value, Tensor):
        return torch.device("cpu") if isinstance(value, torch.device) else value
    return value.detach().to("cpu", copy=True)


def _clone(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _wide_copy(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    return value.to(WIDE[value.dtype]) if value.dtype in WIDE else value.clone()
