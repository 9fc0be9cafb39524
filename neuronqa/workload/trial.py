"""One architecture tried from its example config to two optimizer steps, and judged clean or not."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

import torch
from torch import nn
from transformers import PreTrainedModel

from neuronqa.domain.outcome import clean_detail
from neuronqa.workload.architectures import Architecture
from neuronqa.workload.build import build
from neuronqa.workload.examples import example
from neuronqa.workload.levels import Level
from neuronqa.workload.planner import plan_config
from neuronqa.workload.runnable import BuildFailure, Runnable

NOISE: Final = 1e-6
"""A gradient's root mean square below this part of the largest of its tower is rounding noise."""
SHARE: Final = 0.95
NEVER: Final = re.compile(
    r"(k|key|key_proj|k_proj|to_k|key_layer|linear_k|wk|W_K)\.bias$"  # softmax does not see what all keys share
    r"|(qa_outputs|qa_classifier|span_classifier)\.bias$"  # nor what all positions share
    r"|mask_token$|mask_embed\w*$|masked_spec_embed$"  # used only where something is masked
)
"""Parameters that cannot have a gradient in an ordinary training run."""
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
    still: tuple[str, ...] = ()
    """Parameters whose gradient is missing or below noise."""
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
        loss, still = _train(runnable)
    except Exception as error:  # noqa: BLE001 - a model may raise anything
        return Trial(built=True, ran=True, level=level, partial=runnable.partial, reason=_told("training", error))
    return _judged(runnable, loss, still, level, plan.kernel_key)


def _judged(runnable: Runnable, loss: list[float], still: dict[str, list[str]], level: int, key: str) -> Trial:
    finite = all(math.isfinite(value) for value in loss)
    moved = len(set(loss)) > 1
    quiet = [name for names in still.values() for name in names]
    dead = _dead_towers(runnable.module, still)
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
        reason = f"no gradient in {dead[0]}"
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
        still=tuple(quiet[:40]),
        parameters=sum(p.numel() for p in runnable.module.parameters()),
        kernel_key=key,
    )


def _train(runnable: Runnable) -> tuple[list[float], dict[str, list[str]]]:
    """Loss before and after each step, and the parameters of each tower that got no gradient in the first."""
    trained = [p for p in runnable.module.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=LEARNING_RATE)
    losses: list[float] = []
    still: dict[str, list[str]] = {}
    for step in range(STEPS):
        torch.manual_seed(step)
        loss = runnable.loss(runnable.module(**runnable.inputs))
        losses.append(float(loss.detach()))
        loss.backward()  # type: ignore[no-untyped-call]
        if step == 0:
            still = _still(runnable.module)
        optimizer.step()
        optimizer.zero_grad()
    return losses, still


def towers(module: nn.Module) -> dict[str, list[str]]:
    """Names of trainable parameters by the innermost pretrained model that holds them."""
    homes = [name for name, part in module.named_modules() if isinstance(part, PreTrainedModel)]
    found: dict[str, list[str]] = {}
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            home = max((h for h in homes if not h or name.startswith(f"{h}.")), key=len, default="")
            found.setdefault(home, []).append(name)
    return found


def _still(module: nn.Module) -> dict[str, list[str]]:
    parameters = dict(module.named_parameters())
    found: dict[str, list[str]] = {}
    for tower, names in towers(module).items():
        sizes = {name: _size(parameters[name].grad) for name in names}
        floor = NOISE * max(sizes.values(), default=0.0)
        found[tower] = [name for name, size in sizes.items() if not size > floor]
    return found


def _size(gradient: torch.Tensor | None) -> float:
    if gradient is None or gradient.numel() == 0:
        return 0.0
    return float(gradient.float().pow(2).mean().sqrt())


def _dead_towers(module: nn.Module, still: dict[str, list[str]]) -> list[str]:
    found = []
    for tower, names in towers(module).items():
        able = [name for name in names if not NEVER.search(name)]
        dead = [name for name in still[tower] if name in able]
        if len(dead) > (1 - SHARE) * len(able):
            found.append(f"{tower or 'the model'}: {len(dead)} of {len(able)}, {', '.join(dead[:4])}")
    return found


def _told(stage: str, error: Exception) -> str:
    return clean_detail(f"{stage}: {type(error).__name__}: {error}")
