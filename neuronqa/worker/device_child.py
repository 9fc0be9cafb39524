"""The device child: loads the build it was ordered, runs the workload from the reference's start, writes what it saw.

It judges nothing, and it cannot tell an overlay from a planted fault: both ride in the order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

from neuronqa.device.protocol import Adapter, Device, Recording
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Mode, Phase, Variant
from neuronqa.domain.observation import INPUT_FILE, TENSOR_FILE, WEIGHT_FILE, Failure, GraphUse, Observation, Progress
from neuronqa.domain.workload import Workload
from neuronqa.errors import NeuronQAError
from neuronqa.worker.exchange import Arrays, read_arrays, read_metadata, write_arrays, write_observation
from neuronqa.worker.executing import execute
from neuronqa.worker.failures import describe
from neuronqa.worker.graphs import GraphWatch, compiled
from neuronqa.worker.reference import DTYPES, Build
from neuronqa.worker.repetition import repeat
from neuronqa.worker.state import Structure
from neuronqa.worker.training import Marks, Notes, Subject, seed_everything
from neuronqa.worker.trees import replace_tensors, unpack
from neuronqa.workload.runnable import BuildFailure, Runnable

Restore = Callable[[nn.Module], None]


@dataclass
class _Run:
    """What has been seen so far: whatever ends the run, this much is written."""

    observation: Observation
    notes: Notes
    device: Device | None = None
    recording: Recording | None = None
    repeated: Arrays = field(default_factory=dict)


class Watching:
    """How a run is watched: as the device records itself. A search watches otherwise."""

    repeats = True
    """Is the first step run once more at the end?"""

    def recording(self, device: Device, mark: Marks) -> Recording:
        del mark
        return device.recording()

    def report(self, observation: Observation) -> Observation:
        """The last word on what is written."""
        return observation


AS_RECORDED: Final = Watching()


def observe(
    request: Mapping[str, Any],
    build: Build,
    adapter: Callable[[str], Adapter],
    emit: Callable[[Progress], None],
    watching: Watching = AS_RECORDED,
) -> None:
    """Fill `request["out"]`. What the model or the device raises is data; only our own faults raise."""
    mark = Marks(emit)
    folder = Path(request["out"])
    run = _Run(Observation(role="device", reached=Progress.STARTED), Notes(parameter_names=()))
    try:
        _observe(request, build, adapter, mark, run, watching)
        reached = Progress.DONE
    except (BuildFailure, NeuronQAError):
        raise  # The reference built the same workload: that it cannot be built or loaded here is our fault.
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever model and device raise is data
        reached = mark.current
        run.observation = replace(run.observation, failure=_failure(error, mark.current, run.device))
    mark(Progress.REPORT)
    write_arrays(folder / TENSOR_FILE, {**run.notes.arrays, **run.notes.curves(), **run.repeated})
    write_observation(folder, watching.report(_finish(run, reached)))


def _observe(
    request: Mapping[str, Any],
    build: Build,
    adapter: Callable[[str], Adapter],
    mark: Marks,
    run: _Run,
    watching: Watching,
) -> None:
    variant = Variant.parse(request["variant"])
    order = BuildOrder.from_json(request["order"])
    mark(Progress.LOAD)
    device = adapter(order.device).load(order, request.get("last_op_file", ""))
    run.device = device
    mark(Progress.BUILD)
    runnable = build(Workload.from_json(request["workload"]))
    mark(Progress.LOAD)
    _examine(runnable, variant, device, mark)
    restore = restoring(runnable.module, Path(request["reference"]))
    structure, subject = place(runnable, variant, Path(request["reference"]), restore, device.torch_device)
    run.notes.parameter_names = tuple(name for name, _ in subject.module.named_parameters())
    moved = structure.after_move(subject.module, device.torch_device)
    run.observation = replace(run.observation, state=moved, not_observable=device.not_observable)
    write_observation(Path(request["out"]), replace(run.observation, reached=Progress.LOAD))
    run.recording = watching.recording(device, mark)
    run.notes.aside = _paused(run.recording)
    with _compilation(subject, variant, device, mark, run):
        _execute(subject, variant, int(request["steps"]), mark, run)
    if watching.repeats:
        run.repeated = repeat(subject, variant.phase, run.notes, restore)
    mark(Progress.REPORT)
    device.synchronize()
    if variant.phase is Phase.TRAIN:
        stepped = structure.after_step(subject.module, device.torch_device, moved)
        run.observation = replace(run.observation, state=stepped)


def _examine(runnable: Runnable, variant: Variant, device: Device, mark: Marks) -> None:
    """Where less is executed than is asked about, compile the whole first: it raises for what would be refused."""
    examine: Callable[..., None] | None = getattr(device, "examine", None)
    if variant.mode is Mode.COMPILE and runnable.whole is not None and examine is not None:
        mark(Progress.COMPILE)
        examine(runnable.whole, DTYPES[variant.dtype], runnable.loss, runnable.compile_budget_s)
        mark(Progress.LOAD)


def place(
    runnable: Runnable, variant: Variant, reference: Path, restore: Restore, target: torch.device
) -> tuple[Structure, Subject]:
    """Give the module the reference's weights, buffers and inputs, and move all of it to the device."""
    module = runnable.module.to(DTYPES[variant.dtype])
    restore(module)
    file = reference / INPUT_FILE
    inputs = unpack(read_metadata(file)["skeleton"], read_arrays(file))
    structure = Structure.of(module)
    module = module.to(target)
    placed = dict(replace_tensors(inputs, lambda tensor: tensor.to(target)))
    return structure, Subject.of(runnable, module, placed)


def restoring(built: nn.Module, reference: Path) -> Restore:
    """What puts a module back to where the reference began, wherever it is, its tied weights come apart or not."""
    weights = read_arrays(reference / WEIGHT_FILE)
    first = {id(parameter): name for name, parameter in built.named_parameters()}
    tied = {name: first[id(one)] for name, one in built.named_parameters(remove_duplicate=False)}

    @torch.no_grad()
    def restore(module: nn.Module) -> None:
        for name, parameter in module.named_parameters():
            parameter.copy_(torch.from_numpy(weights[f"param/{tied[name]}"]))
        for name, buffer in module.named_buffers():
            buffer.copy_(torch.from_numpy(weights[f"buffer/{name}"]))
        module.zero_grad(set_to_none=True)

    return restore


@contextmanager
def _compilation(subject: Subject, variant: Variant, device: Device, mark: Marks, run: _Run) -> Iterator[None]:
    if variant.mode is not Mode.COMPILE:
        yield
        return
    watch = GraphWatch()
    try:
        with watch.watching(mark):
            subject.forward = compiled(subject.module, device.compile_backend())
            yield
    finally:
        run.observation = replace(run.observation, graph=_graph_use(device, watch))


def _execute(subject: Subject, variant: Variant, steps: int, mark: Marks, run: _Run) -> None:
    seed_everything()
    started = time.process_time()
    assert run.recording is not None
    run.recording.start()
    try:
        execute(subject, variant.phase, steps, run.notes, mark)
    finally:
        run.recording.stop()
        run.observation = replace(run.observation, seconds={"run": time.process_time() - started})


def _paused(recording: Recording) -> Callable[[], Any]:
    @contextmanager
    def paused() -> Iterator[None]:
        recording.stop()
        try:
            yield
        finally:
            recording.start()

    return paused


def _failure(error: BaseException, progress: Progress, device: Device | None) -> Failure:
    if device is None:
        return describe(error, progress)
    failure = describe(error, progress, code=device.error_code)
    last: Callable[[], str] = getattr(device, "failed_op", str)
    return failure if failure.op else replace(failure, last_op=last())


def _finish(run: _Run, reached: Progress) -> Observation:
    names = run.notes.parameter_names
    observation = replace(
        run.observation,
        reached=reached,
        curve=run.notes.curve(),
        dtypes=run.notes.dtypes,
        parameter_names=names,
        steps=len(run.notes.update),
    )
    steps = run.notes.seconds()
    observation = replace(observation, seconds={**observation.seconds, **steps})
    if observation.graph is not None and steps:
        tax = replace(observation.graph, first_step_s=steps["first_step"], steady_step_s=steps["steady_step"])
        observation = replace(observation, graph=tax)
    if run.recording is not None:
        observation = replace(observation, ops=run.recording.ops(), ops_complete=run.recording.complete)
    if run.device is not None:
        observation = replace(observation, memory_peak=run.device.memory_peak())
    return observation


def _graph_use(device: Device, watch: GraphWatch) -> GraphUse:
    """The device knows its backend's part, dynamo knows where graphs end."""
    return replace(device.graph_use(), breaks=watch.breaks(), recompiles=watch.recompiles())
