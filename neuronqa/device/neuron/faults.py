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
from types import MappingProxyType
from typing import Any, Final

from neuronqa.domain.case import Mode
from neuronqa.domain.outcome import Check
from neuronqa.errors import BadInput

Value = float | int | str

PHASES: Final = ("any", "forward", "backward")
COMMON: Final[Mapping[str, Value]] = MappingProxyType({"phase": "any", "nth": 0, "size": 0})

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
    modes: tuple[Mode, ...] = (Mode.EAGER, Mode.COMPILE)

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


def _numbers() -> tuple[FaultKind, ...]:
    """Wrong values: every one is a shape of wrongness the parity check must know."""
    parity = Check.PARITY
    return (
        FaultKind(name="scale", summary="results times a factor", check=parity, op=MATMUL, parameters={"factor": 1.02}),
        FaultKind(name="offset", summary="results plus a share of their own scale", check=parity, op=MATMUL, parameters={"share": 0.02}),
        FaultKind(name="sign", summary="results negated", check=parity, op=MATMUL),
        FaultKind(name="zero", summary="results all zero", check=parity, op=MATMUL),
        FaultKind(name="nan", summary="one element NaN", check=parity, op=MATMUL),
        FaultKind(name="inf", summary="one element infinite", check=parity, op=MATMUL),
        FaultKind(name="noise", summary="noise relative to each element", check=parity, op=MATMUL, parameters={"share": 0.01}),
        FaultKind(name="saturate", summary="results limited to a multiple of their own scale", check=parity, op=MATMUL, parameters={"limit": 1.0}),
        FaultKind(name="bf16-result", summary="results rounded to bfloat16", check=parity, op=MATMUL),
        FaultKind(name="tf32-result", summary="the last 13 bits of each float32 cleared", check=parity, op=MATMUL),
        FaultKind(name="half-range", summary="values beyond float16 become infinite", check=parity, op=MATMUL, parameters={"gain": 65536.0}),
        FaultKind(name="swapped-rows", summary="the first two rows change places", check=parity, op=MATMUL),
        FaultKind(name="shifted", summary="the last dimension rotated by one", check=parity, op=MATMUL),
        FaultKind(name="reversed", summary="the last dimension backwards", check=parity, op=MATMUL),
        FaultKind(name="stale", summary="the result of the call before, where it has the same shape", check=parity, op=MATMUL),
        FaultKind(name="dropped-last", summary="the last element of each row is zero", check=parity, op=MATMUL),
        FaultKind(name="dropped-tile", summary="the last quarter of each row is zero", check=parity, op=MATMUL),
        FaultKind(name="repeated-tile", summary="the first quarter of each row overwrites the last", check=parity, op=MATMUL),
        FaultKind(name="flipped-bit", summary="one exponent bit of one element", check=parity, op=MATMUL),
        FaultKind(name="uninitialised", summary="the last element of each row was never written", check=parity, op=MATMUL),
        FaultKind(name="layout", summary="wrong for arguments that are not contiguous only", check=parity, op="aten::gelu|aten::silu|aten::mul.Tensor|aten::add.Tensor"),
        FaultKind(name="unstable", summary="another result at every call", check=parity, op=MATMUL, parameters={"share": 0.01}),
    )  # fmt: skip


def _kernels() -> tuple[FaultKind, ...]:
    """Kernels that compute something else: mistakes that real devices made."""
    parity = Check.PARITY
    return (
        FaultKind(name="bf16-accumulation", summary="matrix products summed in bfloat16", check=parity, op=MATMUL),
        FaultKind(name="bf16-operands", summary="matrix operands rounded to bfloat16", check=parity, op=MATMUL),
        FaultKind(name="dropped-contraction", summary="the last eighth of the contraction left out", check=parity, op=MATMUL),
        FaultKind(name="inverted-accumulate", summary="only the last half of the contraction counts", check=parity, op=MATMUL),
        FaultKind(name="dropped-bias-tile", summary="addmm forgets its bias in one of four tiles", check=parity, op="aten::addmm|aten::convolution"),
        FaultKind(name="unbiased-variance", summary="layer norm divides by n - 1", check=parity, op="aten::native_layer_norm"),
        FaultKind(name="missing-epsilon", summary="rsqrt of slightly less", check=parity, op=NORM, parameters={"share": 0.01}),
        FaultKind(name="tanh-gelu", summary="gelu by its tanh formula", check=parity, op="aten::gelu"),
        FaultKind(name="table-activation", summary="activations from a coarse table", check=parity, op=ACTIVATION, parameters={"step": 0.125}),
        FaultKind(name="softmax-temperature", summary="softmax of slightly smaller logits", check=parity, op="aten::_softmax", parameters={"factor": 0.98}),
        FaultKind(name="unnormalised-softmax", summary="softmax that does not add up to one", check=parity, op="aten::_softmax", parameters={"factor": 0.99}),
        FaultKind(name="dropped-mask", summary="masked positions attend", check=parity, op="aten::masked_fill*|aten::where.self"),
        FaultKind(name="off-by-one-index", summary="each row taken from the next index", check=parity, op="aten::embedding|aten::index_select|aten::gather"),
        FaultKind(name="short-sum", summary="a reduction that leaves out the last element", check=parity, op=REDUCE),
        FaultKind(name="bf16-sum", summary="reductions in bfloat16", check=parity, op=REDUCE),
        FaultKind(name="restarted-cumsum", summary="cumsum starts anew half way", check=parity, op="aten::cumsum"),
        FaultKind(name="lost-duplicates", summary="embedding gradients of repeated tokens overwrite each other", check=parity, op="aten::embedding_dense_backward"),
        FaultKind(name="convolution-edge", summary="the first output column of a convolution is zero", check=parity, op="aten::convolution"),
        FaultKind(name="frozen-statistics", summary="batch norm does not update its running statistics", check=parity, op="aten::native_batch_norm"),
    )  # fmt: skip


def _training() -> tuple[FaultKind, ...]:
    parity, train = Check.PARITY, Check.TRAIN
    backward = {"phase": "backward"}
    return (
        FaultKind(name="zeroed-gradient", summary="a backward operator returns zeros", check=parity, op=MATMUL, parameters=backward),
        FaultKind(name="scaled-gradient", summary="gradients times a factor", check=parity, op=MATMUL, parameters={"factor": 1.1, **backward}),
        FaultKind(name="negated-gradient", summary="gradients with the wrong sign", check=parity, op=MATMUL, parameters=backward),
        FaultKind(name="lost-accumulation", summary="the second gradient of a tensor is not added", check=parity, op="aten::add.Tensor|aten::add_.Tensor", parameters=backward),
        FaultKind(name="skipped-update", summary="the optimizer's last operator does nothing", check=parity, op=UPDATE),
        FaultKind(name="doubled-update", summary="the optimizer steps twice as far", check=parity, op=UPDATE),
        FaultKind(name="late-drift", summary="matrix products drift from the hundredth call on", check=train, op=MATMUL, parameters={"factor": 1.05, "after": 100}),
    )  # fmt: skip


def _failures() -> tuple[FaultKind, ...]:
    run, fallback, eager = Check.RUN, Check.FALLBACK, (Mode.EAGER,)
    return (
        FaultKind(name="raise", summary="the operator raises", check=run, op=MATMUL),
        FaultKind(name="not-implemented", summary="the operator is refused as not implemented", check=run, op=MATMUL),
        FaultKind(name="delayed-error", summary="an error that surfaces at the next synchronisation", check=run, op=MATMUL),
        FaultKind(name="device-error", summary="a runtime error with an NRT status", check=run, op=MATMUL, parameters={"status": 1003}),
        FaultKind(name="out-of-memory", summary="the device reports that its memory is full", check=run, op=MATMUL),
        FaultKind(name="segfault", summary="a null pointer is written in C", check=run, op=MATMUL),
        FaultKind(name="abort", summary="the process aborts", check=run, op=MATMUL),
        FaultKind(name="killed", summary="the process is killed as by the kernel", check=run, op=MATMUL),
        FaultKind(name="exit", summary="the process exits silently with code 0", check=run, op=MATMUL, parameters={"code": 0}),
        FaultKind(name="hang", summary="an endless loop in C that holds the interpreter's lock", check=run, op=MATMUL),
        FaultKind(name="slow", summary="every call sleeps", check=run, op=MATMUL, parameters={"seconds": 3600.0}),
        FaultKind(name="leak", summary="every call keeps host memory for good", check=run, op=MATMUL, parameters={"megabytes": 256}),
        FaultKind(name="no-kernel", summary="the operator has no kernel", check=fallback, op=MATMUL, parameters={"mechanism": 1}, modes=eager),
        FaultKind(name="refused-arguments", summary="the operator's kernel refuses its arguments", check=fallback, op=MATMUL, parameters={"mechanism": 2}, modes=eager),
        FaultKind(name="recovered", summary="the operator fails and is recovered on the CPU", check=fallback, op=MATMUL, parameters={"mechanism": 3}, modes=eager),
        FaultKind(name="silent-fallback", summary="the operator's kernel copies to the CPU and tells nobody", check=fallback, op=MATMUL, parameters={"mechanism": 4}, modes=eager),
        FaultKind(name="replaced-parameters", summary="moving a module makes new parameters and unties shared ones", check=Check.STATE, site=Site.DEVICE),
    )  # fmt: skip


def _compiler() -> tuple[FaultKind, ...]:
    compiled = (Mode.COMPILE,)
    site, check = Site.COMPILER, Check.COMPILE
    return (
        FaultKind(name="graph-not-executed", summary="the backend hands the model back uncompiled", check=check, site=site, modes=compiled),
        FaultKind(name="graph-refused", summary="the compiler refuses every graph", check=check, site=site, parameters={"code": "NCC_EVRF001"}, modes=compiled),
        FaultKind(name="compiler-error", summary="the compiler fails with an internal error", check=check, site=site, modes=compiled),
        FaultKind(name="compiler-crash", summary="the compiler takes the process down", check=check, site=site, modes=compiled),
        FaultKind(name="compiler-hang", summary="the compiler never returns", check=check, site=site, modes=compiled),
        FaultKind(name="graph-on-cpu", summary="a whole graph runs on the CPU and tells nobody", check=Check.FALLBACK, site=site, modes=compiled),
        FaultKind(name="graph-stale", summary="a graph returns what it returned the first time", check=Check.TRAIN, site=site, modes=compiled),
        FaultKind(name="graph-dropped-operator", summary="a pass removes an addition from the graph", check=Check.PARITY, site=site, modes=compiled),
        FaultKind(name="graph-wrong-constant", summary="a pass changes a constant in the graph", check=Check.PARITY, site=site, modes=compiled),
    )  # fmt: skip


def _twins() -> tuple[FaultKind, ...]:
    return (
        FaultKind(name="twin-noise", summary="noise of a quarter of the tolerance", check=None, op=MATMUL, parameters={"roundings": 1.0}),
        FaultKind(name="twin-reordered", summary="matrix products summed backwards", check=None, op=MATMUL),
        FaultKind(name="twin-tiled", summary="matrix products summed in tiles of 128", check=None, op=MATMUL),
        FaultKind(name="twin-identity", summary="a kernel that only calls the standard one", check=None, op=MATMUL),
    )  # fmt: skip


KINDS: Final[Mapping[str, FaultKind]] = MappingProxyType(
    {kind.name: kind for kind in (*_numbers(), *_kernels(), *_training(), *_failures(), *_compiler(), *_twins())}
)


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
