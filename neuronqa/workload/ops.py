"""An operator of PyTorch's own operator tests (OpInfo) becomes a runnable: a module that calls it on every sample."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.utils._pytree import TreeSpec, tree_flatten, tree_leaves, tree_unflatten

from neuronqa.domain.outcome import Kind
from neuronqa.domain.workload import OP_TESTS, OpSpec
from neuronqa.workload.loss import Projection
from neuronqa.workload.model import failure
from neuronqa.workload.runnable import BuildFailure, Runnable

HINT: Final = "PyTorch's operator tests need a package: pip install 'neuronqa[selftest]'"


def runnable(spec: OpSpec) -> Runnable:
    """Raises BuildFailure for an operator that this PyTorch does not test, or that no sample runs of on the CPU."""
    entry = _entries().get(spec.op)
    if entry is None:
        raise BuildFailure(Kind.BUILD_ERROR, "no such operator", f"PyTorch {torch.__version__} tests no {spec.op!r}")
    dtype = getattr(torch, spec.dtype)
    differentiable = entry.supports_autograd and dtype in entry.supported_backward_dtypes("cpu")
    torch.manual_seed(spec.seed)
    try:
        samples = list(itertools.islice(_running(entry, dtype, requires_grad=differentiable), spec.samples))
    except Exception as error:
        raise failure(error) from error
    if not samples:
        raise BuildFailure(Kind.INPUTS_ERROR, "no sample", f"no sample of {spec.op} runs on the CPU in {spec.dtype}")
    module = Op(entry.op, samples)
    return Runnable(module=module, inputs={"tensors": module.tensors()}, loss=module.loss(spec.seed))


@dataclass(frozen=True)
class Sample:
    """One call: its arguments, flat, and what PyTorch's own test makes of the result before it differentiates."""

    leaves: list[Any]
    structure: TreeSpec
    processed: Callable[[Any], Any]


class Op(nn.Module):
    """Calls one operator on each sample. Tensors that are differentiated are parameters, the others are inputs."""

    def __init__(self, op: Callable[..., Any], samples: list[Sample]) -> None:
        super().__init__()
        self._op = op
        self._samples = samples
        self.place = nn.Buffer(torch.zeros(1))
        for name, leaf in self._named():
            if _learnt(leaf):
                self.register_parameter(name, nn.Parameter(leaf.detach().clone()))

    def tensors(self) -> dict[str, Tensor]:
        """The tensors of all samples that are not parameters."""
        return {name: leaf.detach().clone() for name, leaf in self._named() if not _learnt(leaf)}

    def forward(self, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
        results = {}
        for number, sample in enumerate(self._samples):
            leaves = [self._argument(f"s{number}_{place}", leaf, tensors) for place, leaf in enumerate(sample.leaves)]
            value, args, kwargs = tree_unflatten(leaves, sample.structure)
            results[str(number)] = self._op(value, *args, **kwargs)
        return results

    def loss(self, seed: int) -> Callable[[Any], Tensor]:
        """The projection of what each sample's own test differentiates; no gradient where nothing has one."""
        project = Projection(seed)

        def loss(results: Mapping[str, Any]) -> Tensor:
            pairs = zip(self._samples, results.values(), strict=True)
            roots = [_real(leaf) for one, result in pairs for leaf in _differentiable(one.processed(result))]
            return project(roots) if roots else torch.zeros(())

        return loss

    def _named(self) -> Iterator[tuple[str, Tensor]]:
        for number, sample in enumerate(self._samples):
            for place, leaf in enumerate(sample.leaves):
                if isinstance(leaf, Tensor):
                    yield f"s{number}_{place}", leaf

    def _argument(self, name: str, leaf: Any, tensors: Mapping[str, Tensor]) -> Any:
        """Cloned where the operator may write to it, so that a second run finds what the first one found."""
        if isinstance(leaf, Tensor):
            return getattr(self, name) if _learnt(leaf) else tensors[name].clone()
        return self.place.device if isinstance(leaf, torch.device) or leaf == "cpu" else leaf


def _running(entry: Any, dtype: torch.dtype, *, requires_grad: bool) -> Iterator[Sample]:
    """The samples of strided tensors whose call does not raise on the CPU and gives numbers, not NaN or Inf."""
    for one in entry.sample_inputs("cpu", dtype, requires_grad=requires_grad):
        leaves, structure = tree_flatten((one.input, one.args, one.kwargs))
        sample = Sample(leaves, structure, one.output_process_fn_grad)
        if any(isinstance(leaf, Tensor) and leaf.layout is not torch.strided for leaf in leaves):
            continue
        try:
            value, args, kwargs = tree_unflatten([_copy(leaf) for leaf in leaves], structure)
            result = entry.op(value, *args, **kwargs)
        except Exception:  # noqa: BLE001  what the CPU cannot do is no question to a device
            continue
        if _finite(result):
            yield sample


def _finite(result: Any) -> bool:
    tensors = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor) and leaf.layout is torch.strided]
    return all(bool(torch.isfinite(one).all()) for one in tensors if one.is_floating_point() or one.is_complex())


def _copy(leaf: Any) -> Any:
    return leaf.detach().clone() if isinstance(leaf, Tensor) else leaf


def _learnt(leaf: Tensor) -> bool:
    return leaf.requires_grad and leaf.is_floating_point()


def _differentiable(result: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor) and leaf.requires_grad]


def _real(tensor: Tensor) -> Tensor:
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


@cache
def _entries() -> Mapping[str, Any]:
    """Every OpInfo by name."""
    try:
        tests = importlib.import_module(OP_TESTS)
    except ImportError as error:
        raise BuildFailure(Kind.BUILD_MISSING_DEPENDENCY, error.name or "", HINT) from error
    return {f"{one.name}.{one.variant_test_name}" if one.variant_test_name else one.name: one for one in tests.op_db}
