"""The products of the matmul suite at full size: modelled time and share of the peak, device by device.

Nothing here is measured. A Trainium line is the cost model's, of one logical core; a GPU line is a roofline of
published peaks, which no kernel beats and most miss.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from neuronqa import bundled
from neuronqa.device.neuron import profile
from neuronqa.device.neuron.cost.estimate import Operand, estimate

ROWS: Final = (1, 128, 2048)
PROFILES: Final = ("trn2-sdk2.33", "trn3-sdk2.33")
BFLOAT16: Final = "bfloat16"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Product:
    """`m` rows by a weight from `k` to `n`."""

    m: int
    k: int
    n: int

    @property
    def flops(self) -> int:
        return 2 * self.m * self.k * self.n

    @property
    def nbytes(self) -> int:
        """Both factors and the result, once, in bfloat16."""
        return 2 * (self.m * self.k + self.k * self.n + self.m * self.n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Something with a peak. `profile` names the cost model; without one it is a roofline."""

    name: str
    flops: float
    """A second."""
    memory: float
    """Bytes a second."""
    profile: str = ""
    source: str = ""

    def seconds(self, product: Product) -> float:
        """Modelled."""
        if not self.profile:
            return max(product.flops / self.flops, product.nbytes / self.memory)
        left = Operand((product.m, product.k), BFLOAT16)
        right = Operand((product.k, product.n), BFLOAT16)
        result = Operand((product.m, product.n), BFLOAT16)
        return estimate("mm", [left, right], [result], profile.load(self.profile).hardware).seconds

    def mfu(self, product: Product) -> float:
        """The share of the peak it would reach. Modelled."""
        return product.flops / self.seconds(product) / self.flops


@cache
def projections() -> dict[str, tuple[tuple[str, int, int], ...]]:
    """Name, `k` and `n` of every projection of every model."""
    sizes: dict[str, Sequence[int]] = _data("models.toml")["models"]
    return {model: tuple(_projections(*numbers)) for model, numbers in sizes.items()}


def _projections(
    hidden: int, intermediate: int, heads: int, kv_heads: int, width: int, vocabulary: int
) -> Iterator[tuple[str, int, int]]:
    yield "query", hidden, heads * width
    yield "key-value", hidden, kv_heads * width
    yield "attention-output", heads * width, hidden
    yield "up", hidden, intermediate
    yield "down", intermediate, hidden
    yield "head", hidden, vocabulary


@cache
def products() -> tuple[Product, ...]:
    """Every distinct product, smallest work first."""
    shapes = {(k, n) for rows in projections().values() for _, k, n in rows}
    return tuple(sorted((Product(m=m, k=k, n=n) for k, n in shapes for m in ROWS), key=lambda one: (one.flops, one)))


@cache
def machines() -> tuple[Machine, ...]:
    """Trainium's logical cores and the GPUs."""
    return (*map(_core, PROFILES), *(_gpu(one) for one in _data("rooflines.toml")["device"]))


def _core(name: str) -> Machine:
    """The peak is what the model gives the largest product."""
    hardware = profile.load(name).hardware
    flops = 2 * 128 * 128 * hardware.tensor_ghz * 1e9 * hardware.cores_per_device
    memory = hardware.memory_gbps * 1e9 * hardware.cores_per_device
    label = f"{hardware.target}, one logical core (modelled)"
    return Machine(name=label, flops=flops, memory=memory, profile=name, source="the cost model of this profile")


def _gpu(given: dict[str, Any]) -> Machine:
    return Machine(
        name=str(given["name"]),
        flops=float(given["tflops"]) * 1e12,
        memory=float(given["memory_gbps"]) * 1e9,
        source=str(given["source"]),
    )


def _data(name: str) -> dict[str, Any]:
    path: Path = bundled.folder("catalogs") / "matmul" / name
    return tomllib.loads(path.read_text("utf-8"))
