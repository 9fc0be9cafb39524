"""One architecture tried from its example config to two optimizer steps, and judged clean or not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from neuronqa.domain.outcome import clean_detail
from neuronqa.workload.architectures import Architecture
from neuronqa.workload.build import build
from neuronqa.workload.examples import example
from neuronqa.workload.gradients import Tower, towers
from neuronqa.workload.levels import Level
from neuronqa.workload.planner import plan_config
from neuronqa.workload.runnable import BuildFailure, Runnable

LEARNING_RATE: Final = 1e-3
STEPS: Final = 2


@dataclass(frozen=True, kw_only=True)
class Trial:
    """How far an architecture came. `reason` says what kept it from a clean training run; empty when nothing did."""

    built: bool = False
    ran: bool = False
    trained: bool = False
    ran_clean: bool = False
    trained_clean: bool = False
    level: int = 0
    reason: str = ""
    partial: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    loss: tuple[float, ...] = ()
    excused: tuple[str, ...] = ()
    """Parameters that cannot have a gradient."""
    parameters: int = 0
    kernel_key: str = ""


def attempt(architecture: Architecture) -> Trial:
    """Plan, build, run and train one architecture. Raises nothing the architecture may be blamed for."""
    try:
        plan = plan_config(example(architecture))
    except Exception as error:  # noqa: BLE001 - a config class may fail on its own defaults with anything
        return Trial(reason=_told("example", error))
    if plan.workload is None:
        return Trial(reason=f"{plan.status.value}: {plan.reason}")
    level = int(getattr(plan.workload.spec, "level", 0))
    try:
        runnable = build(plan.workload)
    except BuildFailure as error:
        inputs = error.kind.stage.value == "inputs"
        return Trial(built=inputs, level=level, reason=clean_detail(f"{error.kind.value}: {error}"))
    try:
        loss, found = _train(runnable)
    except Exception as error:  # noqa: BLE001 - a model may raise anything
        return Trial(built=True, ran=True, level=level, partial=runnable.partial, reason=_told("training", error))
    return _judged(runnable, loss, found, level, plan.kernel_key)


def _judged(runnable: Runnable, loss: list[float], found: list[Tower], level: int, key: str) -> Trial:
    finite = all(math.isfinite(value) for value in loss)
    moved = len(set(loss)) > 1
    dead = [tower for tower in found if not tower.alive]
    whole = not runnable.partial and level == Level.SMALL
    reason = ""
    if runnable.partial:
        reason = f"partial: {', '.join(runnable.partial)}"
    elif level != Level.SMALL:
        reason = f"level {level}: widths kept"
    elif not finite:
        reason = "loss is not finite"
    elif not moved:
        reason = "loss does not move"
    elif dead:
        reason = (
            f"no gradient in {dead[0].name or 'the model'}: {len(dead[0].dead)} of {dead[0].able}, {dead[0].dead[0]}"
        )
    return Trial(
        built=True,
        ran=True,
        trained=finite and moved,
        ran_clean=whole,
        trained_clean=whole and finite and moved and not dead,
        level=level,
        reason=reason,
        partial=runnable.partial,
        repairs=runnable.repairs,
        loss=tuple(value if math.isfinite(value) else 0.0 for value in loss),
        excused=tuple(name for tower in found for name, _ in tower.excused),
        parameters=sum(p.numel() for p in runnable.module.parameters()),
        kernel_key=key,
    )


def _train(runnable: Runnable) -> tuple[list[float], list[Tower]]:
    """Loss before each step, and what the first backward pass reached."""
    trained = [p for p in runnable.module.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=LEARNING_RATE)
    losses: list[float] = []
    found: list[Tower] = []

    def loss() -> Tensor:
        torch.manual_seed(0)
        return runnable.loss(runnable.module(**runnable.inputs))

    for step in range(STEPS):
        value = loss()
        losses.append(float(value.detach()))
        value.backward()
        if step == 0:
            found = towers(runnable.module, loss)
        optimizer.step()
        optimizer.zero_grad()
    return losses, found


def _told(stage: str, error: Exception) -> str:
    return clean_detail(f"{stage}: {type(error).__name__}: {error}")
