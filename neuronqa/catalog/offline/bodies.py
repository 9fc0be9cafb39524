"""The configs an entry of a model type may have: published shapes, the class's default, and variants of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from neuronqa.catalog.offline import shapes, variants
from neuronqa.catalog.offline.draws import Draws, Weighted
from neuronqa.catalog.offline.shapes import Shape

Config = dict[str, Any]
Accepts = Callable[[Mapping[str, Any]], bool]
TRIES: Final = 3
"""Attempts per wanted variant; types whose classes refuse most changes get fewer variants."""


@dataclass(frozen=True)
class Body:
    """A full-size config without class, dtype and labels."""

    config: Config
    parameters: int
    dtype: str
    weight: float
    published: bool


def bodies(
    model_type: str, default: Config | None, known: Sequence[Shape], wanted: int, accepts: Accepts, draws: Draws
) -> list[Body]:
    """Published shapes (or the default where there are none), then up to `wanted` variants the class accepts."""
    if default is None:
        return []
    found = [
        Body(shapes.merged(default, shape.config), shape.parameters, shape.dtype, shape.weight, True) for shape in known
    ]
    if not found:
        found = [Body(default, parameters(default), _usual_dtype(default), 1.0, False)]
    seen = [body.config for body in found]
    roots = Weighted({index: body.weight for index, body in enumerate(found)})
    made: list[Body] = []
    for _ in range(wanted * TRIES):
        if len(made) == wanted:
            break
        root = found[roots.draw(draws)]
        config = varied(root.config, draws)
        if config is None or config in seen or not accepts({"model_type": model_type, **config}):
            continue
        seen.append(config)
        made.append(Body(config, parameters(config), root.dtype, 1.0, False))
    return found + made


def varied(config: Config, draws: Draws) -> Config | None:
    """One or two moves on the config or on one of its sub-configs; None when none applied."""
    moves = Weighted(dict(variants.ALL))
    result: Config | None = None
    for _ in range(draws.one((1, 1, 2))):
        base = result or config
        path = draws.one(["", *_paths(base)])
        target = base[path] if path else base
        changed = moves.draw(draws)(target, draws)
        if changed is not None:
            result = {**base, path: changed} if path else changed
    return result


def parameters(config: Mapping[str, Any]) -> int:
    """A rough count from widths and depths; the facts of synthetic entries need no better."""
    total = sum(parameters(value) for value in config.values() if isinstance(value, dict))
    hidden = _first(config, variants.HIDDEN)
    if not hidden:
        return total
    depth = _first(config, ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "depth")) or (
        _first(config, ("encoder_layers",)) + _first(config, ("decoder_layers",))
    )
    inner = _first(config, variants.INNER) or 4 * hidden
    experts = _first(config, variants.EXPERTS) or 1
    gates = 3 if "rms_norm_eps" in config else 2
    return (
        total
        + (depth or 12) * hidden * (4 * hidden + experts * gates * inner)
        + _first(config, ("vocab_size",)) * hidden
    )


def _first(config: Mapping[str, Any], keys: Sequence[str]) -> int:
    for key in keys:
        value = config.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return 0


def _paths(config: Config) -> list[str]:
    return [key for key, value in config.items() if isinstance(value, dict) and "model_type" in value]


def _usual_dtype(config: Config) -> str:
    """Recent decoders are published in bfloat16, everything else in float32."""
    text = next((config[key] for key in ("text_config", "llm_config") if isinstance(config.get(key), dict)), config)
    return "bfloat16" if "rms_norm_eps" in text else "float32"
