"""The shapes of well-known published models, from `catalogs/shapes.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neuronqa import bundled
from neuronqa.errors import BadInput


@dataclass(frozen=True)
class Shape:
    """What a config.json of one published model says; the rest is its class's default."""

    of: str
    parameters: int
    weight: float
    dtype: str
    config: Mapping[str, Any]


def load() -> dict[str, list[Shape]]:
    """Shapes by model type, in the order of the file. Raises BadInput for a table that cannot be used."""
    path = bundled.folder("catalogs") / "shapes.toml"
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        return {model_type: _shapes(items) for model_type, items in tables.items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"the shapes cannot be used: {error}", where=str(path)) from error


def _shapes(items: list[dict[str, Any]]) -> list[Shape]:
    found: dict[str, Shape] = {}
    for item in items:
        start: Mapping[str, Any] = found[item["like"]].config if "like" in item else {}
        config = merged(merged(start, item["config"]), dict.fromkeys(item.get("null", ())))
        found[item["of"]] = Shape(
            of=item["of"],
            parameters=round(item["b"] * 1e9),
            weight=float(item.get("weight", 1)),
            dtype=item["dtype"],
            config=config,
        )
    return list(found.values())


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` laid on `under`, sub-configs likewise; a sub-config of another model type replaces the one below."""
    result = dict(under)
    for key, value in over.items():
        below: Any = result.get(key)
        alike = isinstance(value, dict) and isinstance(below, dict) and _same_type(value, below)
        result[key] = merged(below, value) if alike else value
    return result


def _same_type(over: Mapping[str, Any], under: Mapping[str, Any]) -> bool:
    return "model_type" not in over or over["model_type"] == under.get("model_type")
