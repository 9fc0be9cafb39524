"""A factory in a Python file becomes a runnable: what it returned is looked at before anything runs."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import random
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from neuronqa import bundled
from neuronqa.domain.outcome import Kind
from neuronqa.domain.workload import ModuleSpec
from neuronqa.workload.loss import Projection
from neuronqa.workload.model import failure, without_dropout
from neuronqa.workload.runnable import BuildFailure, MakeOptimizer, Runnable

RETURNS: Final = "(module, inputs), (module, inputs, loss) or (module, inputs, loss, optimizer)"
_PARTS: Final = (2, 4)


def runnable(spec: ModuleSpec) -> Runnable:
    """Call the factory a spec names. Raises BuildFailure for whatever it raises, or returns that is no workload.

    `inputs` may be keyword arguments of forward, positional ones in a tuple, or a single one.
    """
    _seed(spec.seed)
    factory = load(spec.source, spec.source_sha256, spec.factory)
    _seed(spec.seed)
    try:
        made = factory(**spec.arguments)
    except Exception as error:
        raise failure(error) from error
    name = spec.factory
    if not isinstance(made, tuple | list) or not _PARTS[0] <= len(made) <= _PARTS[1]:
        raise _wrong("the factory returned no workload", f"{name} returned {_what(made)}, not {RETURNS}")
    module, given, loss, optimizer = (*made, None, None)[: _PARTS[1]]
    if not isinstance(module, nn.Module):
        raise _wrong("the factory made no module", f"{name} returned {_what(module)} where its module should be")
    if not any(True for _ in module.parameters()):
        raise BuildFailure(Kind.BUILD_VACUOUS, "no parameters", f"{name} made a module with nothing to train")
    inputs = named(module, given)
    _refuse_elsewhere(module, inputs)
    without_dropout(module)
    return Runnable(
        module=module.train(),
        inputs=inputs,
        loss=Projection(spec.seed) if loss is None else _loss(name, loss),
        loss_takes_inputs=loss is not None and _takes_two(loss),
        optimizer=_optimizer(name, module, optimizer),
    )


def named(module: nn.Module, given: Any) -> dict[str, Any]:
    """The arguments of `module.forward` by name. Raises BuildFailure where they do not fit it."""
    signature = inspect.signature(module.forward)
    ways: list[Callable[[], inspect.BoundArguments]] = [lambda: signature.bind(given)]
    if isinstance(given, Mapping) and all(isinstance(name, str) for name in given):
        ways.insert(0, lambda: signature.bind(**given))
    elif isinstance(given, tuple | list):
        ways.insert(0, lambda: signature.bind(*given))
    problem = ""
    for way in ways:
        try:
            return _by_name(way())
        except TypeError as error:
            problem = problem or str(error)
    message = f"the inputs do not fit forward{signature}: {problem}"
    raise BuildFailure(Kind.INPUTS_ERROR, "the inputs do not fit forward", message)


def _by_name(bound: inspect.BoundArguments) -> dict[str, Any]:
    """Raises TypeError for arguments that have no name to be given by."""
    found: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        match bound.signature.parameters[name].kind:
            case inspect.Parameter.VAR_KEYWORD:
                found |= value
            case inspect.Parameter.VAR_POSITIONAL | inspect.Parameter.POSITIONAL_ONLY:
                raise TypeError(f"{name} can be given by position only; give it a name")
            case _:
                found[name] = value
    return found


def _refuse_elsewhere(module: nn.Module, inputs: Mapping[str, Any]) -> None:
    """Everything starts on the CPU: the reference runs there, and the move to the device is part of the test."""
    state = (*module.named_parameters(), *module.named_buffers())
    leaves = [leaf for leaf in tree_leaves(dict(inputs)) if isinstance(leaf, Tensor)]
    placed = [*((f"parameter {key}", tensor) for key, tensor in state), *(("an input", leaf) for leaf in leaves)]
    for what, tensor in placed:
        if tensor.device.type != "cpu":
            message = f"{what} is on {tensor.device}; make everything on the CPU, it is moved for you"
            raise _wrong("not made on the CPU", message)


def _loss(name: str, loss: Any) -> Callable[..., Tensor]:
    if not callable(loss):
        raise _wrong("the loss is no function", f"{name} returned {_what(loss)} where its loss should be")

    def scalar(*arguments: Any) -> Tensor:
        value = loss(*arguments)
        if not isinstance(value, Tensor) or value.numel() != 1:
            raise TypeError(f"the loss must be a tensor of one element, not {_what(value)}")
        return value.reshape(())

    return scalar


def _takes_two(loss: Callable[..., Any]) -> bool:
    """Does it ask for the inputs beside the outputs?"""
    try:
        inspect.signature(loss).bind(None)
    except TypeError:
        return True
    except ValueError:  # a builtin that does not tell
        return False
    return False


def _optimizer(name: str, module: nn.Module, given: Any) -> MakeOptimizer | None:
    """What makes the optimizer anew for every run: from a function of the parameters, or after one that was made."""
    if given is None:
        return None
    if isinstance(given, torch.optim.Optimizer):
        return _like(module, given)
    if not callable(given):
        raise _wrong("the optimizer is none", f"{name} returned {_what(given)} where its optimizer should be")

    def make(running: nn.Module) -> torch.optim.Optimizer:
        parameters: Iterable[nn.Parameter] = running.parameters()
        made = given(parameters)
        if not isinstance(made, torch.optim.Optimizer):
            raise TypeError(f"the optimizer's function returned {_what(made)}, not an optimizer")
        return made

    return make


def _like(module: nn.Module, model: torch.optim.Optimizer) -> MakeOptimizer:
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    try:
        groups = [
            {key: [names[id(one)] for one in value] if key == "params" else value for key, value in group.items()}
            for group in model.param_groups
        ]
    except KeyError:
        raise _wrong("the optimizer is of another module", "it holds parameters that the module does not") from None
    accepted = inspect.signature(type(model)).parameters
    options = {key: value for key, value in model.defaults.items() if key in accepted}

    def make(running: nn.Module) -> torch.optim.Optimizer:
        by_name = dict(running.named_parameters())
        mine = [{**group, "params": [by_name[name] for name in group["params"]]} for group in groups]
        kind: Any = type(model)
        made: torch.optim.Optimizer = kind(mine, **options)
        return made

    return make


def load(source: str, sha256: str, function: str) -> Callable[..., Any]:
    """Load a function from the very file that is named; what lies beside a file of one's own can be imported.

    Raises BuildFailure.
    """
    path = Path(source)
    own = path.is_absolute()
    if not own:
        path = bundled.folder("catalogs") / path
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _wrong("no such file", f"{path}: {error.strerror}") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise _wrong("the file is not the one the spec names", f"{path} has changed")
    if own:
        sys.path.insert(0, str(path.parent))
    name = f"neuronqa_workload_{sha256[:16]}"
    loader = importlib.util.spec_from_file_location(name, path)
    assert loader is not None
    assert loader.loader is not None
    module = importlib.util.module_from_spec(loader)
    sys.modules[name] = module
    try:
        loader.loader.exec_module(module)
    except Exception as error:
        raise failure(error) from error
    factory = getattr(module, function, None)
    if not callable(factory):
        raise _wrong("no such factory", f"{source} has no function {function}")
    found: Callable[..., Any] = factory
    return found


def _seed(seed: int) -> None:
    """A factory may draw from any of the three."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def _wrong(detail: str, message: str) -> BuildFailure:
    return BuildFailure(Kind.BUILD_ERROR, detail, message)


def _what(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return "nothing" if value is None else f"a {type(value).__name__}"
