"""A workload becomes a runnable: model, complete inputs, loss; for one spec the same, bit for bit, everywhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import torch
from transformers import PreTrainedModel

from neuronqa.domain.outcome import Kind
from neuronqa.domain.workload import AttentionSpec, HfSpec, ModuleSpec, OpSpec, ScriptSpec, Workload
from neuronqa.workload import architectures, attention, learnt, ops
from neuronqa.workload.factory import runnable
from neuronqa.workload.fitting import fit, partial
from neuronqa.workload.inputs.adaptation import Adaptation
from neuronqa.workload.inputs.scene import Scene
from neuronqa.workload.levels import Level, reach
from neuronqa.workload.model import make
from neuronqa.workload.runnable import BuildFailure, Runnable


def build(workload: Workload, adaptation: Mapping[str, Any] | None = None) -> Runnable:
    """Make what a workload describes. Raises BuildFailure, which is data; torch's random state is left as it was.

    `adaptation` is what another build of the same workload left in `Runnable.adaptation`; it is tried first.
    """
    with torch.random.fork_rng(devices=[]):
        match workload.spec:
            case HfSpec() as spec:
                return _hf(spec, workload.hash, adaptation)
            case ModuleSpec() as spec:
                return runnable(spec)
            case OpSpec() as spec:
                return ops.runnable(spec)
            case AttentionSpec() as spec:
                return attention.runnable(spec)
            case ScriptSpec():
                raise BuildFailure(Kind.BUILD_ERROR, "a script is no module", "a script runs by itself")


def _hf(spec: HfSpec, name: str, adaptation: Mapping[str, Any] | None) -> Runnable:
    started = time.perf_counter()
    model = make(spec)
    made = time.perf_counter()
    stage = scene(spec, model)
    fitted = fit(stage, name, Adaptation.from_json(adaptation) if adaptation else learnt.recall(name))
    return Runnable(
        module=model,
        inputs=fitted.inputs,
        loss=fitted.loss,
        partial=partial(stage, fitted.adaptation),
        repairs=fitted.adaptation.told(),
        adaptation=fitted.adaptation.to_json(),
        seconds={"build": made - started, "inputs": time.perf_counter() - made},
    )


def scene(spec: HfSpec, model: PreTrainedModel) -> Scene:
    """What the inputs of a built model are made from."""
    found = architectures.find(spec.model_type, spec.class_name)
    task = found.task if found else architectures.Task.FEATURES
    tokens = reach(Level(spec.level)).tokens
    return Scene(model, model.config, task, spec.class_name, tokens, spec.seed)
