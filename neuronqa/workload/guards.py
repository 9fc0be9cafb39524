"""What is refused before anything is allocated."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from torch import nn

from neuronqa.domain.outcome import Kind
from neuronqa.workload.levels import Level
from neuronqa.workload.meaning import Meaning, meaning
from neuronqa.workload.runnable import BuildFailure
from neuronqa.workload.tree import is_count, nodes

MOST_PARAMETERS: Final = 48_000_000
"""About 200 MB in float32; training holds it four times, the float64 oracle twice that."""
MOST_AUDIT_PARAMETERS: Final = 400_000_000
_STACKS: Final = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "depth")


def check_config(config: dict[str, Any]) -> None:
    """Raise BuildFailure for hyper-parameters that are not numbers, models without layers, ids beyond a vocabulary."""
    for path, value in _floats("", config):
        if math.isnan(value):
            raise BuildFailure(Kind.BUILD_ERROR, "NaN in the config", f"{path} is NaN")
    for node in nodes(config):
        for name in _STACKS:
            layers = node.fields.get(name)
            if is_count(layers) and layers <= 0 and not node.path:
                raise BuildFailure(Kind.BUILD_VACUOUS, "no layers", f"{name} is {layers}: there is nothing to test")
        _check_vocabulary(node.fields)


def _check_vocabulary(fields: dict[str, Any]) -> None:
    size, pad = fields.get("vocab_size"), fields.get("pad_token_id")
    if is_count(size) and is_count(pad) and size > 0 and pad >= size:
        message = f"pad_token_id {pad} is not below vocab_size {size}"
        raise BuildFailure(Kind.BUILD_ERROR, "token id beyond the vocabulary", message)


def check_sizes(config: dict[str, Any]) -> None:
    """Raise BuildFailure for widths, heads and vocabularies that are negative or zero where there must be some."""
    for node in nodes(config):
        for name in ("hidden_size", "d_model", "n_embd", "num_attention_heads", "vocab_size", "intermediate_size"):
            value = node.fields.get(name)
            if is_count(value) and (value < 0 or (value == 0 and meaning(name) is Meaning.HEADS)):
                raise BuildFailure(Kind.BUILD_ERROR, f"{name} is not positive", f"{name} is {value}")


def check_model(model: nn.Module, level: Level) -> None:
    """Raise BuildFailure for a model (on the meta device) with no parameters, or with more than a case may hold."""
    count = sum(parameter.numel() for parameter in model.parameters())
    if count == 0:
        raise BuildFailure(Kind.BUILD_VACUOUS, "no parameters", f"{type(model).__name__} has nothing to train")
    limit = MOST_AUDIT_PARAMETERS if level is Level.AUDIT else MOST_PARAMETERS
    if count > limit:
        raise BuildFailure(Kind.BUILD_TOO_LARGE, "parameters after shrinking", f"{count:,} parameters, limit {limit:,}")


def _floats(path: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, float):
        yield path, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _floats(f"{path}.{name}" if path else str(name), item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _floats(f"{path}.{index}", item)
