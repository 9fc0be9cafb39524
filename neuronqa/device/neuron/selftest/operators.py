"""PyTorch's own operator tests (OpInfo) on the device: every entry, forward and backward, against the CPU.

Each operator and dtype runs in a forked child that loads the device, with the profile `ideal`, so that a crash is one
result and not the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Final

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from neuronqa.device.neuron.selftest.behaviour import N, backend
from neuronqa.device.neuron.selftest.explained import Explained
from neuronqa.device.neuron.selftest.forked import Ended, forked
from neuronqa.errors import EnvironmentFault

SAMPLES: Final = 8
SECONDS: Final = 60
TOLERANCE: Final = {torch.float32: 1e-5, torch.bfloat16: 2e-2}
SEED: Final = 20_260_101


class Verdict(StrEnum):
    """What became of one operator in one dtype."""

    PASSED = "passed"
    EXPLAINED = "explained"
    UNEXPLAINED = "unexplained"
    CRASHED = "crashed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    op: str
    dtype: str
    verdict: Verdict
    reason: str = ""
    samples: int = 0


def entries() -> list[Any]:
    """Every OpInfo. Raises EnvironmentFault where PyTorch's test helpers lack a package."""
    try:
        from torch.testing._internal.common_methods_invocations import op_db
    except ImportError as error:
        raise EnvironmentFault(
            f"PyTorch's operator tests cannot be loaded: {error}", hint="pip install 'neuronqa[selftest]'"
        ) from error
    return list(op_db)


def name_of(entry: Any) -> str:
    """`add`, or `std.unbiased` for a variant."""
    return f"{entry.name}.{entry.variant_test_name}" if entry.variant_test_name else str(entry.name)


def judge(
    patterns: tuple[str, ...], dtypes: tuple[str, ...], explained: Explained, load: Callable[[], None]
) -> Iterator[Row]:
    """Test the operators whose names match one of `patterns`, in each of `dtypes`, in order.

    `load` loads the device into the process it is called in.
    """
    for entry, dtype in itertools.product(entries(), dtypes):
        if any(fnmatchcase(name_of(entry), pattern) for pattern in patterns):
            yield _row(entry, dtype, explained, load)


def _row(entry: Any, dtype: str, explained: Explained, load: Callable[[], None]) -> Row:
    name, kind = name_of(entry), getattr(torch, dtype)
    if kind not in entry.supported_dtypes("cpu"):
        return Row(name, dtype, Verdict.SKIPPED, "the CPU does not support this dtype")

    def trial() -> str:
        load()
        return str(_Trial(entry, kind).run())

    ended = forked(trial, SECONDS)
    return _verdict(name, dtype, ended, explained)


def _verdict(name: str, dtype: str, ended: Ended, explained: Explained) -> Row:
    if not ended.error:
        samples = int(ended.answer)
        if samples == 0:
            return Row(name, dtype, Verdict.SKIPPED, "no sample runs on the CPU")
        return Row(name, dtype, Verdict.PASSED, samples=samples)
    if ended.crashed:
        return Row(name, dtype, Verdict.CRASHED, ended.error)
    reason = explained.reason(name, dtype)
    verdict = Verdict.EXPLAINED if reason else Verdict.UNEXPLAINED
    return Row(name, dtype, verdict, reason or ended.error)


class _Trial:
    """One operator in one dtype: its samples on both sides."""

    def __init__(self, entry: Any, dtype: torch.dtype) -> None:
        self._entry = entry
        self._dtype = dtype
        self._differentiable = entry.supports_autograd and dtype in entry.supported_backward_dtypes("cpu")

    def run(self) -> int:
        """Return how many samples agreed. Raises what the device raised, or AssertionError for the first difference."""
        torch.manual_seed(SEED)
        samples = self._entry.sample_inputs("cpu", self._dtype, requires_grad=self._differentiable)
        return sum(self._agree(sample) for sample in itertools.islice(samples, SAMPLES))

    def _agree(self, sample: Any) -> bool:
        host = (sample.input, sample.args, sample.kwargs)
        device = _on_device(host)
        try:
            expected = _call(self._entry.op, host)
            wanted = self._gradients(sample, expected, host)
        except Exception:  # noqa: BLE001  what the CPU cannot do is no question to the device
            return False
        actual = _call(_tested(self._entry.op), device)
        tolerance = TOLERANCE[self._dtype]
        _assert_alike(actual, expected, tolerance)
        _assert_alike(self._gradients(sample, actual, device), wanted, tolerance)
        return True

    def _gradients(self, sample: Any, result: Any, arguments: Any) -> list[Tensor | None]:
        """Of what the test itself differentiates: of eigenvectors, for instance, what their phase does not change."""
        return _gradients(sample.output_process_fn_grad(result), arguments) if self._differentiable else []


def _tested(op: Callable[..., Any]) -> Callable[..., Any]:
    """On the CPU it is a compile backend that is tested."""
    if N != "cpu":
        return op
    torch._dynamo.reset()
    return torch.compile(op, backend=backend(), dynamic=False)


def _call(op: Callable[..., Any], arguments: Any) -> Any:
    value, args, kwargs = arguments
    torch.manual_seed(SEED)  # on both sides: the device draws what the CPU draws
    return op(value, *args, **kwargs)


def _gradients(result: Any, arguments: Any) -> list[Tensor | None]:
    """Those of the sum of all differentiable results, by every input that asks for one."""
    roots = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor) and leaf.requires_grad]
    wanted = [leaf for leaf in tree_leaves(arguments) if isinstance(leaf, Tensor) and leaf.requires_grad]
    if not roots or not wanted:
        return []
    total = torch.stack([root.abs().sum() if root.is_complex() else root.sum() for root in roots]).sum()
    return list(torch.autograd.grad(total, wanted, allow_unused=True))


def _on_device(value: Any) -> Any:
    return tree_map(_moved, value)


def _moved(leaf: Any) -> Any:
    if isinstance(leaf, Tensor):
        return leaf.detach().to(N).requires_grad_(leaf.requires_grad)
    if isinstance(leaf, torch.device) or leaf == "cpu":
        return torch.device(N)
    return leaf


def _assert_alike(actual: Any, expected: Any, tolerance: float) -> None:
    def host(leaf: Any) -> Any:
        return leaf.detach().cpu() if isinstance(leaf, Tensor) else leaf

    torch.testing.assert_close(
        tree_map(host, actual),
        tree_map(host, expected),
        rtol=tolerance,
        atol=tolerance,
        equal_nan=True,
        check_stride=False,
    )
