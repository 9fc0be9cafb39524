"""A config as its class completes it: every default filled in, legacy names translated, nothing that is not read."""

from __future__ import annotations

import dataclasses
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

import transformers
from transformers import PreTrainedConfig
from transformers.backbone_utils import BackboneConfigMixin
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

_READ_STAGES: Final = {"out_features", "out_indices", "stage_names"}
"""Which stages of a backbone are read: properties of its config, not fields."""


def instantiate(model_type: str, fields: dict[str, Any]) -> PreTrainedConfig:
    """Make a config object of a known model type. Raises whatever the class's own validation raises.

    No remote code is looked at: the class comes from the library's table, never from `auto_map`. This is `from_dict`
    without its log line, for which that renders the whole config twice, half of its cost.
    """
    config_class = CONFIG_MAPPING[model_type]
    ignored = ("auto_map", "quantization_config", "attn_implementation", "_attn_implementation")
    config = config_class(**{k: v for k, v in fields.items() if k not in ignored})
    assert isinstance(config, PreTrainedConfig)
    return config


def complete(config: PreTrainedConfig, module: str) -> dict[str, Any]:
    """`config.to_dict()` without the fields that neither its class declares nor the modelling source mentions.

    Checkpoints carry notes of the tools that made them; they alter no model, so they must alter no key.
    """
    return _complete(config, _mentioned(module))


def _complete(config: PreTrainedConfig, read: frozenset[str]) -> dict[str, Any]:
    fields = config.to_dict()
    names = {field.name for field in dataclasses.fields(config)} | {"id2label"}
    names |= set(config.attribute_map) | set(config.attribute_map.values())
    kept = names | read | _mentioned(_modelling(config))
    if isinstance(config, BackboneConfigMixin):
        kept |= _READ_STAGES
    read |= _mentioned(type(config).__module__)  # what a config hands on to its parts, it alone may name
    for name, value in vars(config).items():
        if isinstance(value, PreTrainedConfig):
            fields[name] = _complete(value, read)
        elif isinstance(value, list | tuple) and value and all(isinstance(v, PreTrainedConfig) for v in value):
            fields[name] = [_complete(v, read) for v in value]
    return {name: value for name, value in fields.items() if name in kept or name == "model_type"}


def _modelling(config: PreTrainedConfig) -> str:
    return type(config).__module__.replace(".configuration_", ".modeling_")


@cache
def _mentioned(module: str) -> frozenset[str]:
    """Every word of a modelling source; empty where there is no such file. The module is not imported."""
    root = Path(transformers.__file__).parent.parent
    path = root.joinpath(*module.split(".")).with_suffix(".py")
    if not path.is_file():
        return frozenset()
    return frozenset(re.findall(r"[A-Za-z_]\w+", path.read_text(encoding="utf-8")))
