"""A workload becomes a runnable: model, complete inputs, loss; for one spec the same, bit for bit, everywhere."""

from __future__ import annotations

import neuronqa.workload.extras  # noqa: F401 - before transformers looks for torchvision

# isort: split

import hashlib
import importlib.util
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from neuronqa import bundled
from neuronqa.domain.outcome import Kind
from neuronqa.domain.workload import HfSpec, ModuleSpec, Workload
from neuronqa.workload import architectures, learnt
from neuronqa.workload.fitting import fit, partial
from neuronqa.workload.inputs.adaptation import Adaptation
from neuronqa.workload.inputs.scene import Scene
from neuronqa.workload.levels import Level, reach
from neuronqa.workload.loss import Projection
from neuronqa.workload.model import failure, make
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
                return _module(spec)


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


def _module(spec: ModuleSpec) -> Runnable:
    factory = _factory(spec)
    torch.manual_seed(spec.seed)
    try:
        made = factory(**spec.arguments)
        module, inputs = made[0], dict(made[1])
        loss: Callable[[Any], Tensor] = made[2] if len(made) > 2 else Projection(spec.seed)
    except Exception as error:
        raise failure(error) from error
    if not isinstance(module, nn.Module):
        raise BuildFailure(
            Kind.BUILD_ERROR, "the factory made no module", f"{spec.factory} returned {type(module).__name__}"
        )
    if not any(True for _ in module.parameters()):
        raise BuildFailure(Kind.BUILD_VACUOUS, "no parameters", f"{spec.factory} has nothing to train")
    return Runnable(module=module.train(), inputs=inputs, loss=loss)


def _factory(spec: ModuleSpec) -> Callable[..., Any]:
    """Load the factory from the very file the spec names."""
    path = Path(spec.source)
    if not path.is_absolute():
        path = bundled.folder("catalogs") / path
    try:
        source = path.read_bytes()
    except OSError as error:
        raise BuildFailure(Kind.BUILD_ERROR, "no such file", f"{path}: {error.strerror}") from error
    if hashlib.sha256(source).hexdigest() != spec.source_sha256:
        raise BuildFailure(Kind.BUILD_ERROR, "the file is not the one the spec names", f"{path} has changed")
    name = f"neuronqa_workload_{spec.source_sha256[:16]}"
    loader = importlib.util.spec_from_file_location(name, path)
    assert loader is not None
    assert loader.loader is not None
    module = importlib.util.module_from_spec(loader)
    try:
        loader.loader.exec_module(module)
    except Exception as error:
        raise failure(error) from error
    factory: Callable[..., Any] | None = getattr(module, spec.factory, None)
    if factory is None:
        raise BuildFailure(Kind.BUILD_ERROR, "no such factory", f"{spec.source} has no {spec.factory}")
    return factory
