"""The reference child: weights, inputs, what the CPU gets in the case's dtype, and what float64 gets.

It never loads a device, an overlay or a fault, and never learns what it will be compared with.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn

from neuronqa.checks.tensors import spread
from neuronqa.domain.case import Dtype, Phase, Variant
from neuronqa.domain.observation import INPUT_FILE, TENSOR_FILE, WEIGHT_FILE, Curve, Envelope, Observation, Progress
from neuronqa.domain.outcome import Kind
from neuronqa.domain.workload import Workload
from neuronqa.worker.decoding import NoCache
from neuronqa.worker.exchange import Arrays, write_adaptation, write_arrays, write_observation
from neuronqa.worker.executing import execute
from neuronqa.worker.failures import MESSAGE_LIMIT, describe
from neuronqa.worker.oracle import float64
from neuronqa.worker.perturbation import Perturbation
from neuronqa.worker.repetition import repeat
from neuronqa.worker.training import LossWithoutGradient, Marks, Notes, Subject, seed_everything
from neuronqa.worker.trees import pack, replace_tensors, to_array
from neuronqa.workload.runnable import BuildFailure, Runnable

Build = Callable[[Workload], Runnable]

DTYPES: Final = {Dtype.FP32: torch.float32, Dtype.BF16: torch.bfloat16}
PERTURBATIONS: Final = 2
"""Runs besides the plain one. Two leave the spread of one tensor uncertain, but a tensor has many elements, and a
tensor of few is held to the typical spread of its group as well."""


@dataclass(frozen=True)
class Recorded:
    """One finished run."""

    notes: Notes
    seconds: float

    @property
    def arrays(self) -> Arrays:
        return self.notes.arrays

    @property
    def dtypes(self) -> Mapping[str, str]:
        return self.notes.dtypes

    @property
    def curve(self) -> Curve:
        return self.notes.curve()


def record(request: Mapping[str, Any], build: Build, emit: Callable[[Progress], None]) -> None:
    """Fill `request["out"]`. A model that cannot be built or run leaves its failure there; only our faults raise."""
    mark = Marks(emit)
    folder = Path(request["out"])
    variant = Variant.parse(request["variant"])
    observation = Observation(role="reference", reached=Progress.STARTED)
    try:
        mark(Progress.BUILD)
        runnable = build(Workload.from_json(request["workload"]))
        write_adaptation(folder, runnable.adaptation)
        mark(Progress.REFERENCE)
        observation = _run(folder, runnable, variant, int(request["steps"]), mark)
    except BuildFailure as error:
        failure = describe(error, mark.current, kind=error.kind.value, detail=error.detail)
        observation = replace(observation, reached=mark.current, failure=failure)
    except NoCache as error:
        failure = describe(error, mark.current, kind=Kind.INPUTS_ERROR.value, detail=str(error))
        observation = replace(observation, reached=mark.current, failure=failure)
    except LossWithoutGradient as error:
        failure = describe(error, mark.current, kind=Kind.REFERENCE_NO_GRADIENT.value)
        observation = replace(observation, reached=mark.current, failure=failure)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the model raises is data
        observation = replace(observation, reached=mark.current, failure=describe(error, mark.current))
    mark(Progress.REPORT)
    write_observation(folder, observation)


def _run(folder: Path, runnable: Runnable, variant: Variant, steps: int, mark: Marks) -> Observation:
    dtype = DTYPES[variant.dtype]
    module = runnable.module.to(dtype)
    inputs = replace_tensors(runnable.inputs, lambda t: t.to(dtype) if t.is_floating_point() else t)
    start = Start(module, inputs)
    start.save(folder)
    subject = Subject.of(runnable, module, inputs)
    plain = _record(subject, variant.phase, steps, mark)
    again = repeat(subject, variant.phase, plain.notes, start.restore)
    perturbed = []
    for number in range(PERTURBATIONS):
        start.restore(module)
        perturbation = Perturbation(number)
        subject.inputs = perturbation.of_inputs(inputs)
        with perturbation.of_results(module):
            perturbed.append(_record(subject, variant.phase, steps, mark))
    start.restore(module)
    subject.inputs = inputs
    oracle, no_oracle = _oracle(subject, variant.phase, steps, dtype, mark)
    arrays, dtypes = combine(plain, perturbed, oracle)
    write_arrays(folder / TENSOR_FILE, {**arrays, **again})
    return Observation(
        role="reference",
        reached=Progress.DONE,
        parameters=sum(p.numel() for p in module.parameters()),
        parameter_names=tuple(name for name, _ in module.named_parameters()),
        curve=plain.curve,
        envelope=envelope(plain.curve, [run.curve for run in perturbed]),
        partial=runnable.partial,
        repairs=runnable.repairs,
        no_oracle=no_oracle,
        steps=steps if variant.phase is Phase.TRAIN else 0,
        dtypes=dtypes,
        seconds={
            "cpu": plain.seconds,
            "perturbed": sum(run.seconds for run in perturbed),
            "oracle": oracle.seconds if oracle else 0.0,
            **{f"build.{name}": value for name, value in runnable.seconds.items()},
        },
    )


class Start:
    """Where every run begins: parameters, buffers and inputs as they were built, in the case's dtype."""

    def __init__(self, module: nn.Module, inputs: dict[str, Any]) -> None:
        self._state = {name: tensor.detach().clone() for name, tensor in _state(module)}
        self._inputs = inputs

    def save(self, folder: Path) -> None:
        weights = {name: to_array(tensor)[0] for name, tensor in self._state.items()}
        write_arrays(folder / WEIGHT_FILE, weights)
        skeleton, arrays = pack(self._inputs)
        write_arrays(folder / INPUT_FILE, arrays, {"skeleton": skeleton})

    @torch.no_grad()
    def restore(self, module: nn.Module) -> None:
        for name, tensor in _state(module):
            tensor.copy_(self._state[name])
        module.zero_grad(set_to_none=True)


def _state(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from ((f"param/{name}", tensor) for name, tensor in module.named_parameters())
    yield from ((f"buffer/{name}", tensor) for name, tensor in module.named_buffers())


def _record(subject: Subject, phase: Phase, steps: int, mark: Marks) -> Recorded:
    notes = Notes(parameter_names=tuple(name for name, _ in subject.module.named_parameters()))
    started = time.process_time()
    seed_everything()
    silent = Marks(lambda _: None)
    execute(subject, phase, steps, notes, silent)
    if phase is Phase.TRAIN:
        notes.arrays.update(notes.curves())
    mark(Progress.REFERENCE)
    return Recorded(notes, time.process_time() - started)


def _oracle(subject: Subject, phase: Phase, steps: int, dtype: torch.dtype, mark: Marks) -> tuple[Recorded | None, str]:
    """The run in float64 from the same start, or why there is none; leaves the module in float64.

    The model ran in its own dtype, so what float64 cannot do is no failure of the model's.
    """
    subject.module.double()
    subject.inputs = dict(replace_tensors(subject.inputs, lambda t: t.double() if t.is_floating_point() else t))
    try:
        with float64(dtype):
            return _record(subject, phase, steps, mark), ""
    except Exception as error:  # noqa: BLE001 - an operator without a float64 kernel raises what it likes
        return None, f"{type(error).__name__}: {error}"[:MESSAGE_LIMIT]


def envelope(plain: Curve, perturbed: list[Curve]) -> Envelope:
    """The largest distance from the plain run at each step."""
    spreads = {
        field.name: tuple(
            max(abs(getattr(run, field.name)[step] - value) for run in perturbed)
            for step, value in enumerate(getattr(plain, field.name))
        )
        for field in fields(Curve)
    }
    return Envelope(**spreads)


def combine(plain: Recorded, perturbed: list[Recorded], oracle: Recorded | None) -> tuple[Arrays, dict[str, str]]:
    """Lay the runs side by side under the names that the judge reads."""
    arrays: Arrays = {}
    dtypes: dict[str, str] = {}
    for name, array in plain.arrays.items():
        if name.startswith("margin/"):
            if oracle is not None:
                arrays[name] = oracle.arrays[name]
            continue
        if name.startswith("curve/"):
            arrays[name] = np.stack([array, *(run.arrays[name] for run in perturbed)])
            if oracle is not None:
                arrays[f"oracle/{name}"] = oracle.arrays[name]
            continue
        arrays[f"same/{name}"] = array
        dtypes[f"same/{name}"] = plain.dtypes[name]
        if name.startswith("param/") or oracle is None or name not in oracle.arrays:
            continue
        arrays[f"oracle/{name}"] = oracle.arrays[name]
        dtypes[f"oracle/{name}"] = oracle.dtypes[name]
        if array.dtype.kind == "f":
            noise, gains = spread(oracle.arrays[name], [array, *(run.arrays.get(name) for run in perturbed)])
            arrays[f"noise/{name}"], arrays[f"gain/{name}"] = noise, gains
    return arrays, dtypes
