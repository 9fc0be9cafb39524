"""One config for every architecture: what the audit builds where no checkpoint's config is at hand."""

from __future__ import annotations

import neuronqa.workload.extras  # noqa: F401 - before transformers looks for torchvision

# isort: split

import json
from typing import Any

from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from neuronqa.domain.identity import strict
from neuronqa.workload import recipes
from neuronqa.workload.architectures import Architecture


def example(architecture: Architecture) -> str:
    """The text of a config.json for an architecture: the class's defaults, completed by the family's recipe.

    Raises whatever the config class raises for its own defaults.
    """
    fields = recipes.example(architecture)
    if fields is None:
        fields = CONFIG_MAPPING[architecture.model_type]().to_dict()
    fields = {**fields, "model_type": architecture.model_type, "architectures": [architecture.class_name]}
    return json.dumps(strict(_plain(fields)))


def _plain(value: Any) -> Any:
    """JSON has text keys only."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
