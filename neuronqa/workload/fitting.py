"""Inputs are fitted to a model: guessed, tried in one forward, and repaired by what the model says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from neuronqa.domain.outcome import Kind
from neuronqa.workload import learnt, recipes
from neuronqa.workload.architectures import Task
from neuronqa.workload.inputs import UnknownArgument, placeholders, synthesise
from neuronqa.workload.inputs.adaptation import Adaptation
from neuronqa.workload.inputs.labels import targets
from neuronqa.workload.inputs.scene import Scene
from neuronqa.workload.inputs.table import MODALITIES
from neuronqa.workload.loss import Projection, has_own, own
from neuronqa.workload.repair import MOST_STEPS, Trouble, remedies
from neuronqa.workload.runnable import BuildFailure


@dataclass(frozen=True)
class Fitted:
    """Inputs a model ran on, the loss that fits its outputs, and how they differ from the first guess."""

    adaptation: Adaptation
    inputs: dict[str, Any]
    loss: Callable[[Any], Tensor]
    tries: int


def fit(scene: Scene, name: str, known: Adaptation | None) -> Fitted:
    """Find inputs on which the model runs and gives a loss. Raises BuildFailure.

    `name` is the workload's hash, under which the adaptation that worked is kept; `known` is one that worked before.
    The model is left as it was, in the mode the adaptation asks for.
    """
    first = recipes.adaptation(scene)
    buffers = {key: value.clone() for key, value in scene.model.named_buffers()}
    fitted = _search(scene, known if known is not None else first)
    if fitted.adaptation not in (first, known):
        learnt.keep(name, fitted.adaptation)
    _restore(scene, buffers)
    return fitted


def partial(scene: Scene, adaptation: Adaptation) -> tuple[str, ...]:
    """What a run with this adaptation lacks."""
    lacking = {MODALITIES[name] for name in adaptation.without if name in MODALITIES and name in scene.parameters}
    if not adaptation.labels and not adaptation.refused:
        lacking.add("labels")
    if not adaptation.train:
        lacking.add("train-mode")
    return tuple(sorted(lacking))


def _search(scene: Scene, start: Adaptation) -> Fitted:
    """Depth first over remedies, to the first adaptation the model runs on with every modality in its place."""
    seen: list[Adaptation] = []
    waiting = [start]
    telling: Exception | None = None
    spare: Fitted | None = None
    while waiting and len(seen) < MOST_STEPS:
        adaptation = waiting.pop()
        if adaptation in seen or (spare is not None and partial(scene, adaptation)):
            continue
        seen.append(adaptation)
        inputs: dict[str, Any] = {}
        try:
            inputs = _inputs(scene, adaptation)
            found = Fitted(adaptation, inputs, _forward(scene, adaptation, inputs), len(seen))
        except UnknownArgument as error:
            raise BuildFailure(Kind.INPUTS_ERROR, f"unknown argument {error}", f"nothing makes {error}") from error
        except Exception as error:  # noqa: BLE001 - a model may raise anything; what it says is the repair
            if telling is None or not partial(scene, adaptation):
                telling = error
            trouble = Trouble(scene, adaptation, inputs, error)
            waiting += [found for found in reversed(remedies(trouble)) if found not in seen]
            continue
        unplaced = placeholders.unplaced(scene, inputs)
        if not unplaced or partial(scene, adaptation):
            return found
        spare = spare or found
        waiting.append(adaptation.placed(unplaced, 1))
    if spare is not None:
        return spare
    text = " ".join(f"{type(telling).__name__}: {telling}".split())
    raise BuildFailure(Kind.INPUTS_ERROR, text, text) from telling


def _inputs(scene: Scene, adaptation: Adaptation) -> dict[str, Any]:
    given = synthesise(scene, adaptation)
    recipes.inputs(scene, given)
    return given | recipes.labels(scene, given, targets(scene, given)) if adaptation.labels else given


def _forward(scene: Scene, adaptation: Adaptation, inputs: dict[str, Any]) -> Callable[[Any], Tensor]:
    """Run once and return the loss that fits the outputs. Raises whatever the model raises, or ValueError."""
    scene.model.train(adaptation.train)
    torch.manual_seed(scene.seed)
    outputs = scene.model(**inputs)
    if has_own(outputs) and scene.task is not Task.FEATURES:
        return own
    return Projection.of(outputs, scene.seed)


def _restore(scene: Scene, buffers: dict[str, Tensor]) -> None:
    """Undo what trial runs did to running statistics."""
    with torch.no_grad():
        for key, value in scene.model.named_buffers():
            if key in buffers and buffers[key].shape == value.shape:
                value.copy_(buffers[key])
