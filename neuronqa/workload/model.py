"""A spec's config becomes a model on the CPU: checked on the meta device, then built with deterministic weights."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from typing import Any, Final

import torch
import transformers
from torch import nn
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel

from neuronqa.domain.identity import relaxed
from neuronqa.domain.outcome import Kind
from neuronqa.domain.workload import HfSpec
from neuronqa.workload import guards
from neuronqa.workload.complete import instantiate
from neuronqa.workload.levels import Level
from neuronqa.workload.runnable import BuildFailure
from neuronqa.workload.weights import enliven

_MISSING: Final = ("No module named", "requires the", "was not found in your environment", "is not installed")
_DROPS: Final = (
    "drop_prob",
    "drop_path",
    "drop_path_rate",
    "layerdrop",
    "dropout",
    "activation_dropout",
    "dropout_prob",
)


def make(spec: HfSpec) -> PreTrainedModel:
    """Build the model of a spec in float32 and train mode, without any dropout. Raises BuildFailure."""
    fields = relaxed(spec.config)
    guards.check_config(fields)
    guards.check_sizes(fields)
    model_class = _class(spec)
    config = _config(spec, fields, model_class)
    try:
        with torch.device("meta"):
            skeleton = model_class(config)
        guards.check_model(skeleton, Level(spec.level))
        torch.manual_seed(spec.seed)
        model = model_class(_config(spec, fields, model_class))
    except BuildFailure:
        raise
    except Exception as error:
        raise failure(error) from error
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.is_floating_point():
            tensor.data = tensor.data.float()
    model.train()
    without_dropout(model)
    enliven(model, spec.seed)
    return model


def skeleton(spec: HfSpec, fields: dict[str, Any]) -> PreTrainedModel:
    """The model of `fields`, of whatever size, on the meta device and in train mode. Raises BuildFailure."""
    guards.check_config(fields)
    model_class = _class(spec)
    config = _config(spec, fields, model_class)
    try:
        with torch.device("meta"):
            model = model_class(config)
    except Exception as error:
        raise failure(error) from error
    without_dropout(model)
    model.train()
    return model


def without_dropout(model: nn.Module) -> None:
    """Set every dropout-like probability of every module to zero."""
    for module in model.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            module.p = 0.0
        for name in _DROPS:
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)


def failure(error: BaseException) -> BuildFailure:
    """The outcome of an exception raised while a model was built."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    if isinstance(error, ImportError) or any(sign in str(error) for sign in _MISSING):
        return BuildFailure(Kind.BUILD_MISSING_DEPENDENCY, _library(str(error)), text)
    if isinstance(error, MemoryError):
        return BuildFailure(Kind.BUILD_OOM, "", text)
    return BuildFailure(Kind.BUILD_ERROR, text, text)


def _class(spec: HfSpec) -> type[PreTrainedModel]:
    try:
        found = getattr(importlib.import_module(spec.module), spec.class_name)
    except Exception as error:
        raise failure(error) from error
    assert isinstance(found, type)
    assert issubclass(found, PreTrainedModel)
    return found


def _config(spec: HfSpec, fields: dict[str, Any], model_class: type[PreTrainedModel]) -> PreTrainedConfig:
    """The config object `model_class` is made of: the spec's own, or the part of it that the class is for."""
    try:
        config = instantiate(spec.model_type, fields)
    except Exception as error:
        raise failure(error) from error
    wanted = model_class.config_class
    if isinstance(wanted, type) and not isinstance(config, wanted):
        part = next((v for v in _parts(config) if isinstance(v, wanted)), None)
        config = part if part is not None else _around(config, wanted)
    config.dtype = None
    return config


def _around(config: PreTrainedConfig, wanted: type) -> PreTrainedConfig:
    """The config of a head that holds another model's, as its auto class makes it; else `config` itself."""
    if not issubclass(wanted, PreTrainedConfig) or wanted.sub_configs != {"text_config": AutoConfig}:
        return config
    holder: Callable[..., PreTrainedConfig] = wanted
    return holder(text_config=config, hidden_size=config.get_text_config().hidden_size)


def _parts(config: PreTrainedConfig) -> list[PreTrainedConfig]:
    own = [value for value in vars(config).values() if isinstance(value, PreTrainedConfig)]
    return own + [deeper for part in own for deeper in _parts(part)]


def _library(text: str) -> str:
    words = text.replace("'", " ").replace("`", " ").split()
    for before in ("named", "the"):
        if before in words[:-1]:
            return words[words.index(before) + 1]
    return ""


transformers.logging.set_verbosity(logging.CRITICAL)
