"""Running a workload: one inference, or N training steps on one batch. The same code for reference and device."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from neuronqa.domain.observation import Curve, Progress
from neuronqa.domain.optimizer import ADAMW
from neuronqa.worker.boundaries import resized
from neuronqa.worker.exchange import Arrays
from neuronqa.worker.trees import Leaf, leaves, to_array
from neuronqa.workload.runnable import MakeOptimizer, Runnable

SEED = 20240229


class LossWithoutGradient(Exception):
    """The loss reaches no parameter: nothing can be trained, and nothing compared."""


class Marks:
    """Where a child is. Sends every change on, so that its supervisor can place a death."""

    def __init__(self, emit: Callable[[Progress], None]) -> None:
        self._emit = emit
        self.current = Progress.STARTED

    def __call__(self, progress: Progress) -> None:
        self.current = progress
        self._emit(progress)

    def aside(self, progress: Progress) -> None:
        """Report a stage inside the current one (a compilation) without leaving the current one."""
        self._emit(progress)

    def back(self) -> None:
        self._emit(self.current)


@dataclass(kw_only=True)
class Subject:
    """A workload in place: module and inputs on one device in one dtype."""

    module: nn.Module
    forward: Callable[..., Any]
    """The module itself, or what `torch.compile` made of it."""
    inputs: dict[str, Any]
    loss: Callable[..., Tensor]
    loss_takes_inputs: bool = False
    make_optimizer: MakeOptimizer | None = None

    @classmethod
    def of(cls, runnable: Runnable, module: nn.Module, inputs: dict[str, Any]) -> Subject:
        """A runnable whose module and inputs are in place."""
        return cls(
            module=module,
            forward=module,
            inputs=inputs,
            loss=runnable.loss,
            loss_takes_inputs=runnable.loss_takes_inputs,
            make_optimizer=runnable.optimizer,
        )

    def loss_of(self, outputs: Any) -> Tensor:
        return self.loss(outputs, self.inputs) if self.loss_takes_inputs else self.loss(outputs)

    def optimizer(self) -> torch.optim.Optimizer:
        if self.make_optimizer is not None:
            return self.make_optimizer(self.module)
        return torch.optim.AdamW(
            [parameter for _, parameter in self.module.named_parameters()],
            lr=ADAMW.lr,
            betas=(ADAMW.beta1, ADAMW.beta2),
            eps=ADAMW.eps,
            weight_decay=ADAMW.weight_decay,
        )


@dataclass(kw_only=True)
class Notes:
    """What is kept of a run. Filled as the run goes, so that a run that fails half way leaves its first half."""

    parameter_names: tuple[str, ...]
    arrays: Arrays = field(default_factory=dict)
    dtypes: dict[str, str] = field(default_factory=dict)
    loss: list[float] = field(default_factory=list)
    gradient: list[list[float]] = field(default_factory=list)
    update: list[list[float]] = field(default_factory=list)
    step_s: list[float] = field(default_factory=list)
    """Wall seconds of each step, the harness's own copies included: to be looked at, not to be judged by."""
    aside: Callable[[], AbstractContextManager[None]] = nullcontext
    """Entered around every copy to the host, so that the harness's own operators are not recorded."""

    def keep(self, name: str, leaf: Leaf) -> None:
        """Copy `leaf` as it is now."""
        array, dtype = to_array(leaf)
        self.arrays[name] = array.copy()
        self.dtypes[name] = dtype

    def curve(self) -> Curve:
        """The curves over all parameters."""
        return Curve(
            loss=tuple(self.loss),
            gradient_norm=tuple(math.hypot(*norms) for norms in self.gradient),
            update_norm=tuple(math.hypot(*norms) for norms in self.update),
        )

    def seconds(self) -> dict[str, float]:
        """The first step, which pays for compilation, and the median of the others."""
        if len(self.step_s) < 2:
            return {}
        return {"first_step": self.step_s[0], "steady_step": statistics.median(self.step_s[1:])}

    def curves(self) -> Arrays:
        return {
            "curve/loss": np.asarray(self.loss, dtype=np.float64),
            "curve/gradient": self._table(self.gradient),
            "curve/update": self._table(self.update),
        }

    def _table(self, rows: list[list[float]]) -> np.ndarray[Any, Any]:
        return np.asarray(rows, dtype=np.float64).reshape(len(rows), len(self.parameter_names))


def seed_everything() -> None:
    """Before each run, so that what a model draws is the same in every run of every role."""
    random.seed(SEED)
    np.random.seed(SEED)  # Models draw from the global generator (SpecAugment does).
    torch.manual_seed(SEED)


def infer(subject: Subject, notes: Notes, mark: Marks) -> None:
    """Run forward once without gradients; in eager mode, in other sizes as well.

    A size that raises leaves nothing: where only the device raises, its outputs are missing beside the reference's.
    Another size is another graph, so a compiled model is not asked.
    """
    mark(Progress.FORWARD)
    with torch.no_grad():
        outputs = subject.forward(**subject.inputs)
        with notes.aside():
            _keep_outputs(outputs, notes)
            sizes = list(resized(subject.module, subject.inputs)) if subject.forward is subject.module else []
        for name, inputs in sizes:
            with suppress(Exception):
                outputs = subject.forward(**inputs)
                with notes.aside():
                    _keep_outputs(outputs, notes, f"{name}.")


def differentiate(subject: Subject, notes: Notes, mark: Marks) -> None:
    """Run forward and, where the loss depends on a parameter, backward once."""
    mark(Progress.FORWARD)
    outputs = subject.forward(**subject.inputs)
    loss = subject.loss_of(outputs)
    with notes.aside():
        _keep_outputs(outputs, notes)
    if loss.requires_grad:
        with notes.aside():
            notes.keep("loss", loss)
        mark(Progress.BACKWARD)
        loss.backward()
        with notes.aside():
            _keep_gradients(subject.module, notes)


def train(subject: Subject, steps: int, notes: Notes, mark: Marks) -> None:
    """Run `steps` optimizer steps; keep every tensor of the first and the norms of all.

    Raises LossWithoutGradient, and whatever the model or the device raises.
    """
    parameters = [parameter for _, parameter in subject.module.named_parameters()]
    optimizer = subject.optimizer()
    with notes.aside():
        before = _host(parameters)
    for step in range(steps):
        started = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        mark(Progress.FORWARD if step == 0 else Progress.TRAINING)
        outputs = subject.forward(**subject.inputs)
        loss = subject.loss_of(outputs)
        if not loss.requires_grad:
            raise LossWithoutGradient("the loss does not depend on any parameter")
        with notes.aside():
            notes.loss.append(float(loss.detach()))
            if step == 0:
                _keep_outputs(outputs, notes)
                notes.keep("loss", loss)
        if step == 0:
            mark(Progress.BACKWARD)
        loss.backward()
        with notes.aside():
            notes.gradient.append([_norm(p.grad) for p in parameters])
            if step == 0:
                _keep_gradients(subject.module, notes)
        if step == 0:
            mark(Progress.OPTIMIZER)
        optimizer.step()
        with notes.aside():
            after = _host(parameters)
            notes.update.append([_norm(new - old) for new, old in zip(after, before, strict=True)])
            before = after
            if step == 0:
                keep_state(subject, notes)
        notes.step_s.append(time.perf_counter() - started)


def keep_state(subject: Subject, notes: Notes) -> None:
    """Buffers, and the parameters where the judge knows the step: an optimizer of one's own is seen in the curves."""
    if subject.make_optimizer is None:
        for name, parameter in subject.module.named_parameters():
            notes.keep(f"param/{name}", parameter)
    for name, buffer in subject.module.named_buffers():
        notes.keep(f"buffer/{name}", buffer)


def _keep_outputs(outputs: Any, notes: Notes, size: str = "") -> None:
    for path, leaf in leaves(outputs):
        notes.keep(f"output/{size}{path}", leaf)


def _keep_gradients(module: nn.Module, notes: Notes) -> None:
    for name, parameter in module.named_parameters():
        if parameter.grad is not None:
            notes.keep(f"grad/{name}", parameter.grad)


def _host(parameters: list[nn.Parameter]) -> list[Tensor]:
    return [p.detach().to("cpu", copy=True) for p in parameters]


def _norm(tensor: Tensor | None) -> float:
    if tensor is None:
        return 0.0
    host = tensor.detach().cpu()
    dense = host.to_dense() if host.layout is not torch.strided else host
    wide = torch.complex128 if dense.is_complex() else torch.float64
    return float(torch.linalg.vector_norm(dense, dtype=wide))
