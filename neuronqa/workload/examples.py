"""One config for every architecture: what the audit builds where no checkpoint's config is at hand."""

from __future__ import annotations

import json
from typing import Any

from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from neuronqa.domain.identity import strict
from neuronqa.workload import recipes
from neuronqa.workload.architectures import Architecture
from neuronqa.workload.inputs.placeholders import TOKENS
from neuronqa.workload.tree import is_count


def example(architecture: Architecture) -> str:
    """The text of a config.json for an architecture: the class's defaults, completed as checkpoints complete them.

    Raises whatever the config class raises for its own defaults.
    """
    fields = recipes.example(architecture)
    if fields is None:
        fields = CONFIG_MAPPING[architecture.model_type]().to_dict()
    fields = {**fields, "model_type": architecture.model_type, "architectures": [architecture.class_name]}
    recipes.complete(fields)
    _agree(fields)
    _name_placeholders(fields)
    return json.dumps(strict(_plain(fields)))


def _agree(fields: dict[str, Any]) -> None:
    """Every checkpoint makes a tower's output as wide as the text model; some class defaults do not."""
    text, vision = fields.get("text_config"), fields.get("vision_config")
    if not isinstance(text, dict) or not isinstance(vision, dict) or not is_count(text.get("hidden_size")):
        return
    if is_count(vision.get("out_hidden_size")):
        vision["out_hidden_size"] = text["hidden_size"]


def _name_placeholders(fields: dict[str, Any]) -> None:
    """Give each modality whose token is left open one of its own, at the end of the vocabulary."""
    text = fields.get("text_config")
    size = (text if isinstance(text, dict) else fields).get("vocab_size")
    if not is_count(size):
        return
    for offset, names in enumerate(TOKENS.values(), 1):
        for name in names:
            if name in fields and fields[name] is None:
                fields[name] = size - offset


def _plain(value: Any) -> Any:
    """JSON has text keys only."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
