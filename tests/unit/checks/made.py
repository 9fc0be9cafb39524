"""A made-up reference and a device that agrees with it, as arrays: what the table tests spoil one thing at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from neuronqa.checks.seen import Reference, Seen
from neuronqa.checks.steps import adamw_step
from neuronqa.checks.tensors import spread
from neuronqa.domain.case import Dtype, Variant
from neuronqa.domain.observation import Exit, GraphUse, Observation, OpUse, Placement, Progress, StateUse
from neuronqa.domain.outcome import Check
from neuronqa.domain.policy import Thresholds

DONE = Exit(done=True, progress=Progress.DONE)
EAGER = Variant.parse("eager/fp32/train")
COMPILED = Variant.parse("compile/fp32/train")
COMPILE = Variant.parse("compile/fp32/train")
THRESHOLDS = Thresholds()
PARAMETERS = {"first.weight": (8, 6), "first.bias": (8,), "last.weight": (4, 8)}
STEPS = 20

Arrays = dict[str, np.ndarray[Any, Any]]


def truth(seed: int = 0) -> Arrays:
    """What float64 computes."""
    random = np.random.default_rng(seed)
    arrays: Arrays = {
        "output/logits": random.standard_normal((5, 4)),
        "output/choice": np.arange(5),
        "loss": np.asarray(1.75),
        "buffer/mean": random.standard_normal(6),
    }
    for name, shape in PARAMETERS.items():
        arrays[f"grad/{name}"] = 0.01 * random.standard_normal(shape)
    return arrays


def weights() -> Arrays:
    random = np.random.default_rng(99)
    return {f"param/{name}": random.standard_normal(shape).astype(np.float32) for name, shape in PARAMETERS.items()}


def rounded(array: np.ndarray[Any, Any], seed: int, error: float = 2e-7) -> np.ndarray[Any, Any]:
    """`array` as one float32 run would have it."""
    if array.dtype.kind != "f":
        return array
    random = np.random.default_rng(seed)
    return np.asarray(array * (1 + error * random.standard_normal(array.shape)), dtype=np.float32)


def right(seed: int, oracle: Arrays | None = None) -> Arrays:
    """One float32 run: what a device leaves when it is right."""
    arrays = {name: rounded(array, seed + place) for place, (name, array) in enumerate((oracle or truth()).items())}
    for name in PARAMETERS:
        start = weights()[f"param/{name}"]
        step = adamw_step(start, arrays[f"grad/{name}"])
        arrays[f"param/{name}"] = np.asarray(start + step, dtype=np.float32)
    random = np.random.default_rng(seed)
    jitter = 1 + 1e-6 * random.standard_normal(STEPS)
    arrays["curve/loss"] = np.linspace(1.75, 1.0, STEPS) * jitter
    arrays["curve/gradient"] = np.outer(np.linspace(0.1, 0.05, STEPS) * jitter, np.ones(len(PARAMETERS)))
    arrays["curve/update"] = np.outer(np.full(STEPS, 0.01) * jitter, np.ones(len(PARAMETERS)))
    return arrays


def reference_arrays(oracle: Arrays | None = None) -> Arrays:
    exact = oracle or truth()
    runs = [right(seed, exact) for seed in (100, 200, 300)]
    arrays: Arrays = {}
    for name, plain in runs[0].items():
        if name.startswith("curve/"):
            arrays[name] = np.stack([one[name] for one in runs])
            continue
        arrays[f"same/{name}"] = plain
        if name in exact:
            arrays[f"oracle/{name}"] = exact[name]
            if plain.dtype.kind == "f":
                arrays[f"noise/{name}"], arrays[f"gain/{name}"] = spread(exact[name], [one[name] for one in runs])
    return arrays


def reference_observation(arrays: Arrays) -> Observation:
    dtypes = {name: str(array.dtype) for name, array in arrays.items() if not name.startswith("curve/")}
    return Observation(
        role="reference",
        reached=Progress.DONE,
        parameters=sum(array.size for name, array in arrays.items() if name.startswith("same/param/")),
        parameter_names=tuple(PARAMETERS),
        steps=STEPS,
        dtypes=dtypes,
    )


def reference(arrays: Arrays | None = None, dtype: Dtype = Dtype.FP32) -> Reference:
    given = arrays if arrays is not None else reference_arrays()
    return Reference.of(reference_observation(given), given, weights(), dtype, THRESHOLDS)


def device(arrays: Arrays, **changes: Any) -> Observation:
    """A device that ran to the end on itself."""
    whole = Observation(
        role="device",
        reached=Progress.DONE,
        parameter_names=tuple(PARAMETERS),
        steps=STEPS,
        dtypes={name: str(array.dtype) for name, array in arrays.items() if not name.startswith("curve/")},
        ops=(OpUse(op="aten::mm", dtype="float32", placement=Placement.NATIVE, count=10, ns=1000),),
        ops_complete=True,
        graph=GraphUse(graphs=1, ops=(12,), backend_calls=1, executions=STEPS),
        state=StateUse(),
    )
    return replace(whole, **changes)


WHERE = {Check.LOAD: Progress.LOAD, Check.COMPILE: Progress.COMPILE, Check.RUN: Progress.BACKWARD}


def seen(
    observation: Observation | None,
    arrays: Arrays | None = None,
    *,
    stopped: Check | None = None,
    left: Exit = DONE,
    variant: Variant = EAGER,
    against: Reference | None = None,
    thresholds: Thresholds = THRESHOLDS,
) -> Seen:
    """One attempt; `stopped` makes it die in the stage of that check."""
    if stopped is not None:
        left = Exit(done=False, progress=WHERE[stopped], signal="SIGSEGV")
    return Seen(
        reference=against or reference(),
        device=observation,
        arrays=arrays or {},
        left=left,
        variant=variant,
        thresholds=thresholds,
    )
