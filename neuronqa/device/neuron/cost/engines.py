"""Which engine of a NeuronCore does the work of which operator: `catalogs/devices/hardware/engines.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from enum import StrEnum
from functools import cache

from neuronqa import bundled


class Engine(StrEnum):
    """Where an operator's work is done."""

    TENSOR = "Tensor"
    VECTOR = "Vector"
    SCALAR = "Scalar"
    GPSIMD = "GpSimd"
    DMA = "DMA"
    NONE = "none"
    """Metadata only."""


def engine_of(base: str) -> Engine:
    """The engine of an operator by its base name, functional or in place (`add`, `add_`)."""
    table = _table()
    return table.get(base) or table.get(base.rstrip("_"), Engine.VECTOR)


@cache
def _table() -> Mapping[str, Engine]:
    path = bundled.folder("catalogs") / "devices" / "hardware" / "engines.toml"
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    return {op: Engine(group["name"]) for group in data["engine"] for op in group["operators"]}
