"""The device faults that can be planted, by name. A control plants one and must see it caught.

This module knows names, parameters and which check has to notice; what a fault does is in `planted`. No torch here.

A fault is ordered as `{"kind": "scale", "op": "aten::mm|aten::addmm", "factor": 1.02}`: `op` is one or more patterns of
operator names, joined by `|`; parameters that are left out have their defaults. Every fault of an operator also takes
`phase` (`any`, `forward`, `backward`), `nth` (only that call, counted from 1; 0 for all) and `size` (only calls whose
first tensor has a dimension of that size; 0 for all).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from neuronqa.domain.case import Mode
from neuronqa.domain.outcome import Check
from neuronqa.errors import BadInput

Value = float | int | str

PHASES: Final = ("any", "forward", "backward")
COMMON: Final[Mapping[str, Value]] = MappingProxyType({"phase": "any", "nth": 0, "size": 0})

BOTH: Final = (Mode.EAGER, Mode.COMPILE)
MATMUL: Final = "aten::mm|aten::addmm|aten::bmm|aten::baddbmm"
ACTIVATION: Final = "aten::gelu|aten::silu|aten::relu|aten::tanh|aten::sigmoid"
NORM: Final = "aten::native_layer_norm|aten::rsqrt|aten::_fused_rms_norm"
REDUCE: Final = "aten::sum*|aten::mean*"
UPDATE: Final = "aten::addcdiv_|aten::_foreach_addcdiv_*"


class Site(StrEnum):
    """Where a fault sits."""

    OPERATOR = "operator"
    DEVICE = "device"
    COMPILER = "compiler"


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultKind:
    """A kind of fault. `check` is the one that has to notice it; None for a good twin, which none may."""

    name: str
    summary: str
    check: Check | None
    op: str = ""
    site: Site = Site.OPERATOR
    parameters: Mapping[str, Value] = field(default_factory=dict)
    modes: tuple[Mode, ...] = BOTH

    @property
    def good(self) -> bool:
        """Is it a twin that must pass?"""
        return self.check is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault as ordered, with every parameter filled in."""

    kind: FaultKind
    op: str
    parameters: Mapping[str, Value]

    def number(self, name: str) -> float:
        return float(self.parameters[name])


def _of_operator(
    check: Check | None, name: str, summary: str, op: str = MATMUL, modes: tuple[Mode, ...] = BOTH, **parameters: Value
) -> FaultKind:
    return FaultKind(name=name, summary=summary, check=check, op=op, parameters=parameters, modes=modes)


def _of_compiler(check: Check, name: str, summary: str, **parameters: Value) -> FaultKind:
    modes = (Mode.COMPILE,)
    return FaultKind(name=name, summary=summary, check=check, site=Site.COMPILER, parameters=parameters, modes=modes)


def _numbers() -> tuple[FaultKind, ...]:
    """Wrong values: every one is a shape of wrongness the parity check must know."""
    kind = partial(_of_operator, Check.PARITY)
    elementwise = "aten::gelu|aten::silu|aten::mul.Tensor|aten::add.Tensor"
    return (
        kind("scale", "results times a factor", factor=1.02),
        kind("offset", "results plus a share of their own scale", share=0.02),
        kind("sign", "results negated"),
        kind("zero", "results all zero"),
        kind("nan", "one element NaN"),
        kind("inf", "one element infinite"),
        kind("noise", "noise relative to each element", share=0.01),
        kind("saturate", "results limited to a multiple of their own scale", limit=1.0),
        kind("bf16-result", "results rounded to bfloat16"),
        kind("tf32-result", "the last 13 bits of each float32 cleared"),
        kind("half-range", "values beyond float16 become infinite", gain=65536.0),
        kind("swapped-rows", "the first two rows change places"),
        kind("shifted", "the last dimension rotated by one"),
        kind("reversed", "the last dimension backwards"),
        kind("stale", "the result of the call before, where it has the same shape"),
        kind("dropped-last", "the last element of each row is zero"),
        kind("dropped-tile", "the last quarter of each row is zero"),
        kind("repeated-tile", "the first quarter of each row overwrites the last"),
        kind("flipped-bit", "one exponent bit of one element"),
        kind("uninitialised", "the last element of each row was never written"),
        kind("layout", "wrong for arguments that are not contiguous only", elementwise),
        kind("late-write", "a result is written over when the operator is called again", factor=1.5),
        kind("unstable", "another result at every call", share=0.01),
    )


def _kernels() -> tuple[FaultKind, ...]:
    """Kernels that compute something else: mistakes that real devices made."""
    kind = partial(_of_operator, Check.PARITY)
    lookup = "aten::embedding|aten::index_select|aten::gather"
    return (
        kind("bf16-accumulation", "matrix products summed in bfloat16"),
        kind("bf16-operands", "matrix operands rounded to bfloat16"),
        kind("dropped-contraction", "the last eighth of the contraction left out"),
        kind("inverted-accumulate", "only the last half of the contraction counts"),
        kind("dropped-bias-tile", "the bias is forgotten in one of four tiles", "aten::addmm|aten::convolution"),
        kind("unbiased-variance", "layer norm divides by n - 1", "aten::native_layer_norm"),
        kind("missing-epsilon", "a norm of slightly less", NORM, share=0.01),
        kind("tanh-gelu", "gelu by its tanh formula", "aten::gelu"),
        kind("table-activation", "activations from a coarse table", ACTIVATION, step=0.125),
        kind("softmax-temperature", "softmax of slightly smaller logits", "aten::_softmax", factor=0.98),
        kind("unnormalised-softmax", "softmax that does not add up to one", "aten::_softmax", factor=0.99),
        kind("dropped-mask", "masked positions attend", "aten::masked_fill*|aten::where.self"),
        kind("off-by-one-index", "each row taken from the next index", lookup),
        kind("short-sum", "a reduction that leaves out the last element", REDUCE),
        kind("bf16-sum", "reductions in bfloat16", REDUCE),
        kind("restarted-cumsum", "cumsum starts anew half way", "aten::cumsum"),
        kind("lost-duplicates", "gradients of repeated tokens overwrite each other", "aten::embedding_dense_backward"),
        kind("convolution-edge", "the first output column of a convolution is zero", "aten::convolution"),
        kind("frozen-statistics", "batch norm leaves its running statistics alone", "aten::native_batch_norm"),
    )


def _training() -> tuple[FaultKind, ...]:
    kind = partial(_of_operator, Check.PARITY)
    sums = "aten::add.Tensor|aten::add_.Tensor"
    return (
        kind("zeroed-gradient", "a backward operator returns zeros", phase="backward"),
        kind("scaled-gradient", "gradients times a factor", factor=1.1, phase="backward"),
        kind("negated-gradient", "gradients with the wrong sign", phase="backward"),
        kind("lost-accumulation", "the second gradient of a tensor is not added", sums, phase="backward"),
        kind("skipped-update", "the optimizer's last operator does nothing", UPDATE),
        kind("doubled-update", "the optimizer steps twice as far", UPDATE),
        _of_operator(Check.TRAIN, "late-drift", "matrix products drift after some calls", factor=1.05, after=100),
    )


def _failures() -> tuple[FaultKind, ...]:
    kind = partial(_of_operator, Check.RUN)
    return (
        kind("raise", "the operator raises"),
        kind("not-implemented", "the operator is refused as not implemented"),
        kind("delayed-error", "an error that surfaces at the next synchronisation"),
        kind("device-error", "a runtime error with an NRT status", status=1003),
        kind("out-of-memory", "the device reports that its memory is full"),
        kind("segfault", "a null pointer is written in C"),
        kind("abort", "the process aborts"),
        kind("killed", "the process is killed as by the kernel"),
        kind("exit", "the process exits silently with code 0", code=0),
        kind("hang", "an endless loop in C that holds the interpreter's lock"),
        kind("slow", "every call sleeps", seconds=3600.0),
        kind("leak", "every call keeps host memory for good", megabytes=256),
    )


def _fallbacks() -> tuple[FaultKind, ...]:
    """Inside a compiled graph no operator falls back by itself, so these act in eager execution only."""
    kind = partial(_of_operator, Check.FALLBACK, modes=(Mode.EAGER,))
    return (
        kind("no-kernel", "the operator has no kernel", mechanism=1),
        kind("refused-arguments", "the operator's kernel refuses its arguments", mechanism=2),
        kind("recovered", "the operator fails and is recovered on the CPU", mechanism=3),
        kind("silent-fallback", "the operator's kernel copies to the CPU and tells nobody", mechanism=4),
    )


def _device() -> tuple[FaultKind, ...]:
    moving = "moving a module makes new parameters and unties shared ones"
    return (FaultKind(name="replaced-parameters", summary=moving, check=Check.STATE, site=Site.DEVICE),)


def _compiler() -> tuple[FaultKind, ...]:
    kind = partial(_of_compiler, Check.COMPILE)
    return (
        kind("graph-not-executed", "the backend hands the model back uncompiled"),
        kind("graph-refused", "the compiler refuses every graph", code="NCC_EVRF001"),
        kind("compiler-error", "the compiler fails with an internal error"),
        kind("compiler-crash", "the compiler takes the process down"),
        kind("compiler-hang", "the compiler never returns"),
        _of_compiler(Check.FALLBACK, "graph-on-cpu", "a whole graph runs on the CPU and tells nobody"),
        _of_compiler(Check.TRAIN, "graph-stale", "a graph returns what it returned the first time"),
        _of_compiler(Check.PARITY, "graph-dropped-operator", "a pass removes an addition from the graph"),
        _of_compiler(Check.PARITY, "graph-wrong-constant", "a pass changes a constant in the graph"),
    )


def _twins() -> tuple[FaultKind, ...]:
    kind = partial(_of_operator, None)
    return (
        kind("twin-noise", "noise of a quarter of the tolerance", roundings=1.0),
        kind("twin-reordered", "matrix products summed backwards"),
        kind("twin-tiled", "matrix products summed in tiles of 128"),
        kind("twin-identity", "a kernel that only calls the standard one"),
    )


def _all() -> tuple[FaultKind, ...]:
    groups = (_numbers, _kernels, _training, _failures, _fallbacks, _device, _compiler, _twins)
    return tuple(kind for group in groups for kind in group())


KINDS: Final[Mapping[str, FaultKind]] = MappingProxyType({kind.name: kind for kind in _all()})


def parse(ordered: Mapping[str, Any]) -> Fault:
    """Read a fault out of a build order. Raises BadInput for an unknown kind, parameter or type of value."""
    name = ordered.get("kind")
    if name not in KINDS:
        raise BadInput(f"unknown fault {name!r}", hint="see neuronqa.device.neuron.faults")
    kind = KINDS[str(name)]
    defaults = {**(COMMON if kind.site is Site.OPERATOR else {}), **kind.parameters}
    given = {key: value for key, value in ordered.items() if key not in ("kind", "op")}
    for key, value in given.items():
        if key not in defaults:
            raise BadInput(f"the fault {kind.name!r} has no parameter {key!r}", hint=f"it has {', '.join(defaults)}")
        if isinstance(defaults[key], str) != isinstance(value, str):
            raise BadInput(f"the fault {kind.name!r}: {key} must not be {value!r}")
    parameters = {**defaults, **given}
    if parameters.get("phase", "any") not in PHASES:
        raise BadInput(f"the fault {kind.name!r}: phase must be one of {', '.join(PHASES)}")
    return Fault(kind=kind, op=str(ordered.get("op", kind.op)), parameters=MappingProxyType(parameters))
