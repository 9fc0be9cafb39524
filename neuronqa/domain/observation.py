"""What the reference child and the device child saw: facts without judgement.

A child leaves two files in its private folder: `observation.json` (this module's values as strict JSON) and
`tensors.safetensors`; the reference child adds `weights.safetensors` and `inputs.safetensors`, from which every run
starts. The judge reads these and nothing else. Tensors of a dtype NumPy lacks are widened exactly to float32 and their
own dtype is kept in `dtypes`.

Tensor names of a device: `output/PATH`, `loss`, `grad/PARAMETER`, `param/PARAMETER` and `buffer/BUFFER` after the first
optimizer step; `curve/loss` (steps), `curve/gradient` and `curve/update` (steps x parameters: norms); in generation
`output/step.N` (logits), `token/N` (its choice) and `margin/N` (between its first and second choice; a reference keeps
the oracle's).

Both hold `again/NAME` for every tensor that was not the same when the first step was run once more: how far off.

A reference holds below `same/` what the CPU got in the case's dtype and below `oracle/` what float64 got (not `param/`:
a step is judged from the gradient it was given). `noise/` holds, element by element, the root mean square distance from
the oracle of the same-dtype runs: the plain one and those in which every layer's result was moved as much as a rounding
moves it. `gain/` holds for each of these runs the least squares factor from the oracle to it. The curves have one more
leading axis, these runs, the plain one first; float64's own are below `oracle/curve/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

OBSERVATION_FILE: Final = "observation.json"
TENSOR_FILE: Final = "tensors.safetensors"
WEIGHT_FILE: Final = "weights.safetensors"
INPUT_FILE: Final = "inputs.safetensors"
ADAPTATION_FILE: Final = "adaptation.json"
"""What building the workload found out; whoever builds it again starts from there."""
OBSERVATION_SCHEMA: Final = 1
MEMORY: Final = "memory"
"""Stands for an operator where memory changed between two of them."""


class Progress(StrEnum):
    """The marks a child sets as it goes, so that a death can be placed."""

    STARTED = "started"
    BUILD = "build"
    INPUTS = "inputs"
    REFERENCE = "reference"
    LOAD = "load"
    COMPILE = "compile"
    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    TRAINING = "training"
    REPORT = "report"
    DONE = "done"


class Placement(StrEnum):
    """Where an operator really ran."""

    NATIVE = "native"
    CPU = "cpu"


@dataclass(frozen=True, kw_only=True)
class OpUse:
    """One operator as it was used, summed over a run."""

    op: str
    """`aten::add.Tensor`"""
    dtype: str
    placement: Placement
    mechanism: int = 0
    """0 native; 1 no kernel; 2 arguments refused; 3 recovered after an error; 4 hidden in a kernel; 5 whole graph."""
    reported: bool = True
    """Would the device's own API have listed it?"""
    count: int = 1
    nbytes: int = 0
    """Moved between device and host, both ways."""
    ns: int = 0
    shapes: tuple[tuple[int, ...], ...] = ()
    """Of the inputs, first occurrence."""
    strides: tuple[tuple[int, ...], ...] = ()
    """The same; empty where the device does not say."""
    backward: bool = False
    """Did autograd call it while it went backward?"""


@dataclass(frozen=True, kw_only=True)
class GraphBreak:
    """Where and why dynamo gave up on one graph."""

    registry_id: str
    """`GB0123` of torch/_dynamo/graph_break_registry.json, or empty."""
    reason: str
    frame: str
    """`file.py:123 function`"""
    count: int = 1


@dataclass(frozen=True, kw_only=True)
class GraphUse:
    """What compilation did."""

    graphs: int
    ops: tuple[int, ...]
    """Operators per graph."""
    breaks: tuple[GraphBreak, ...] = ()
    recompiles: tuple[str, ...] = ()
    """The guard that failed, one per recompilation."""
    backend_calls: int = 0
    """How often the backend was asked to compile."""
    executions: int = 0
    """How often compiled code ran: proof that it did."""
    compile_s: float = 0.0
    modelled_compile_s: float = 0.0
    cache_hits: int = 0
    cache_misses: int = 0
    first_step_s: float = 0.0
    """Wall seconds of the first training step, which pays for compilation here; 0 where nothing was trained."""
    steady_step_s: float = 0.0
    """The median of the others."""


@dataclass(frozen=True, kw_only=True)
class StateUse:
    """What the move to the device and one step did to the module's own structure. Names of parameters and buffers."""

    untied: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    left_behind: tuple[str, ...] = ()
    wrong_dtype: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One value a training step, over all parameters: to be looked at. The judge works on the tensors."""

    loss: tuple[float, ...] = ()
    gradient_norm: tuple[float, ...] = ()
    update_norm: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """Per step, how far rounding-level perturbations moved the CPU's own curve (absolute, before any tolerance)."""

    loss: tuple[float, ...] = ()
    gradient_norm: tuple[float, ...] = ()
    update_norm: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Failure:
    """An exception that ended the run."""

    progress: Progress
    error: str
    """Class name."""
    inner: str = ""
    """Class name of what it wraps, at the end of the chain; empty where it wraps nothing."""
    message: str
    traceback: str = ""
    code: str = ""
    """`NCC_...` or `NRT ...` where the device gave one."""
    op: str = ""
    """The operator the device has no kernel for, if that is what the exception says."""
    last_op: str = ""
    """The operator that an exception left last, if the device knows."""
    kind: str = ""
    """The outcome's kind where the raiser knew it (`build:vacuous`)."""
    detail: str = ""
    """The pattern that names the cause, where the raiser or the device gave one: no shapes, no names of a model's."""


@dataclass(frozen=True, kw_only=True)
class Deviation:
    """An operator whose result on the device is not what its own inputs make of it on the host."""

    op: str
    dtype: str
    position: int
    """Its first wrong call, counted over all calls of the run."""
    kind: str
    """A `parity:` kind."""
    ratio: float
    """Distance from float64 in tolerances, at its worst."""
    calls: int = 1
    wrong: int = 1
    """How many of its calls were wrong."""
    progress: Progress = Progress.FORWARD
    shapes: tuple[tuple[int, ...], ...] = ()
    """Of the inputs of the first wrong call."""
    strides: tuple[tuple[int, ...], ...] = ()
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """The JSON half of what a child saw."""

    role: str
    """`reference`, `device` or `deviation`."""
    reached: Progress
    failure: Failure | None = None
    parameters: int = 0
    partial: tuple[str, ...] = ()
    """What was left out to make the model run: `image`, `labels`, `train-mode`, ... Never a full pass."""
    repairs: tuple[str, ...] = ()
    curve: Curve = field(default_factory=Curve)
    envelope: Envelope = field(default_factory=Envelope)
    parameter_names: tuple[str, ...] = ()
    """The columns of `curve/gradient` and `curve/update`."""
    steps: int = 0
    """Training steps that were finished."""
    ops: tuple[OpUse, ...] = ()
    ops_complete: bool = False
    """Was every operator seen? An incomplete set always re-runs."""
    graph: GraphUse | None = None
    state: StateUse | None = None
    no_oracle: str = ""
    """Why the reference has no float64 run, if it has none: parity then has no power."""
    dtypes: Mapping[str, str] = field(default_factory=dict)
    deviations: tuple[Deviation, ...] = ()
    """What a search found, in the order of their first wrong calls."""
    searched: int = 0
    """Calls a search compared."""
    decided: int = 0
    """Of these, calls whose result is large enough beside rounding to be wrong."""
    choices: int = 0
    """Choices between numbers (a router's, an argmax) that a search saw made, one for each row."""
    open_choices: int = 0
    """Of these, choices between numbers closer than rounding moves them: either is right."""
    parted: str = "the step was not retraced on the host"
    """Where the step of a search parts from the same step on the host, operator by operator; empty if nowhere."""
    unanswered: int = 0
    """Calls it could not compare: the host has no such operator, or the time was up."""
    not_observable: tuple[str, ...] = ()
    """Names of checks whose facts this device cannot give."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    memory_peak: int = 0
    """Device memory, bytes."""


@dataclass(frozen=True, kw_only=True)
class Exit:
    """How a child ended, as its supervisor saw it."""

    done: bool
    """Did it send its last frame? Without it an exit code of 0 is still a death."""
    progress: Progress
    signal: str = ""
    """`SIGSEGV`"""
    code: int | None = None
    timed_out: bool = False
    memory_exceeded: bool = False
    last_op: str = ""
    stack: str = ""
    stderr_tail: str = ""
    peak_rss: int = 0
    cpu_s: float = 0.0
    wall_s: float = 0.0
    fault: str = ""
    """What failed in the harness itself, in the child; then nothing is known of the case."""
    rank: int | None = None
    """Of a case on several ranks: the one this speaks of, which ended it for all."""


def from_json(cls: type[Any], value: Mapping[str, Any]) -> Any:
    """Rebuild one of this module's values from strict JSON; unknown keys are refused (TypeError)."""
    return cls(**{key: _restore(cls, key, item) for key, item in value.items()})


_NESTED: Final[Mapping[str, type[Any]]] = {
    "failure": Failure,
    "curve": Curve,
    "envelope": Envelope,
    "graph": GraphUse,
    "state": StateUse,
}
_NESTED_LISTS: Final[Mapping[tuple[type[Any], str], type[Any]]] = {
    (Observation, "ops"): OpUse,
    (Observation, "deviations"): Deviation,
    (GraphUse, "breaks"): GraphBreak,
}
_ENUMS: Final[Mapping[str, type[StrEnum]]] = {"reached": Progress, "progress": Progress, "placement": Placement}


def _restore(cls: type[Any], key: str, value: Any) -> Any:
    if key not in cls.__dataclass_fields__:
        raise TypeError(f"{cls.__name__} has no field {key!r}")
    if key in _ENUMS:
        return _ENUMS[key](value)
    if key in _NESTED and isinstance(value, Mapping):
        return from_json(_NESTED[key], value)
    if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        if (cls, key) not in _NESTED_LISTS:
            raise TypeError(f"{cls.__name__}.{key} holds no objects")
        return tuple(from_json(_NESTED_LISTS[cls, key], item) for item in value)
    return _tuples(value)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
