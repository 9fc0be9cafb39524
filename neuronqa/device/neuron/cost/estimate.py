"""Time, instructions and traffic of one operator, from its shapes: a model, not a measurement.

Matrix products go in tiles of 128 x 128 (stationary) by 512 (moving), one instruction each, issued no closer than 64 or
as many cycles as the tile has columns; float32 takes several passes. The other engines take one element a cycle in each
of 128 partitions, two for float32 of two operands, after some 100 cycles a instruction. No operator is faster than the
memory it reads and writes. (Neuron SDK, nki/guides/architecture)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import Final

from neuronqa.device.neuron.cost.engines import Engine, engine_of
from neuronqa.device.neuron.profile import Hardware

PARTITIONS: Final = 128
MOVING: Final = 512
ISSUE_CYCLES: Final = 64
FIXED_CYCLES: Final = 100
CHUNK: Final = 512
"""Elements a partition that one instruction of the vector and scalar engines takes."""
GPSIMD_LANES: Final = 8 * 512 // 32

ITEMSIZE: Final = {
    "float64": 8, "int64": 8, "complex64": 8, "float32": 4, "int32": 4, "bfloat16": 2, "float16": 2, "int16": 2,
    "complex128": 16,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor as the model sees it."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.elements * ITEMSIZE.get(self.dtype, 1)


@dataclass(frozen=True, slots=True)
class Cost:
    """What an operator would take on one logical device."""

    engine: Engine
    seconds: float = 0.0
    flops: int = 0
    nbytes: int = 0
    instructions: int = 0


def estimate(base: str, inputs: Sequence[Operand], outputs: Sequence[Operand], hardware: Hardware) -> Cost:
    """The modelled cost of the operator named `base` (`mm`, `add`, ...)."""
    engine = engine_of(base)
    if engine is Engine.NONE:
        return Cost(engine)
    nbytes = sum(operand.nbytes for operand in (*inputs, *outputs))
    if engine is Engine.TENSOR:
        flops, cycles, instructions = _product(base, inputs, outputs, hardware)
        ghz = hardware.tensor_ghz
    elif engine is Engine.DMA:
        seconds = nbytes / (hardware.dma_gbps * 1e9 * hardware.cores_per_device)
        return Cost(engine, seconds, 0, nbytes, max(1, ceil(nbytes / (PARTITIONS * CHUNK * 4))))
    else:
        flops, cycles, instructions = _elementwise(engine, inputs, outputs)
        ghz = {Engine.VECTOR: hardware.vector_ghz, Engine.SCALAR: hardware.scalar_ghz}.get(engine, hardware.gpsimd_ghz)
    work = cycles / (ghz * 1e9 * hardware.cores_per_device)
    traffic = nbytes / (hardware.memory_gbps * 1e9 * hardware.cores_per_device)
    return Cost(engine, max(work, traffic), flops, nbytes, instructions)


def _product(
    base: str, inputs: Sequence[Operand], outputs: Sequence[Operand], hardware: Hardware
) -> tuple[int, float, int]:
    """Flops, cycles and instructions of `batch` products of [rows, depth] by [depth, columns]."""
    batch, rows, depth, columns = _geometry(base, inputs, outputs)
    tiles = batch * ceil(depth / PARTITIONS) * ceil(rows / PARTITIONS) * ceil(columns / MOVING)
    passes = hardware.float32_passes if inputs and inputs[0].dtype == "float32" else 1
    cycles = tiles * passes * max(min(columns, MOVING), ISSUE_CYCLES)
    return 2 * batch * rows * depth * columns, cycles, tiles * passes


def _geometry(base: str, inputs: Sequence[Operand], outputs: Sequence[Operand]) -> tuple[int, int, int, int]:
    matrices = [operand.shape for operand in inputs if len(operand.shape) >= 2]
    if base.startswith("convolution"):
        weight = matrices[2] if "backward" in base and len(matrices) > 2 else matrices[1]
        results = matrices[0] if "backward" in base else outputs[0].shape
        pixels = results[0] * prod(results[2:])
        factor = 2 if "backward" in base else 1  # one product for the input, one for the weight
        return factor, weight[0], prod(weight[1:]), pixels
    if "attention" in base and len(matrices) >= 3:
        *heads, queries, width = matrices[0]
        products = 5 if "backward" in base else 2
        return products * prod(heads), queries, width, matrices[1][-2]
    if len(matrices) < 2:
        length = inputs[0].elements if inputs else 1
        return 1, 1, length, 1
    left, right = matrices[-2:]
    return prod(left[:-2]), left[-2], left[-1], right[-1]


def _elementwise(engine: Engine, inputs: Sequence[Operand], outputs: Sequence[Operand]) -> tuple[int, float, int]:
    largest = max((operand.elements for operand in (*inputs, *outputs)), default=0)
    lanes = GPSIMD_LANES if engine is Engine.GPSIMD else PARTITIONS
    per_lane = ceil(largest / lanes)
    instructions = max(1, ceil(per_lane / CHUNK))
    wide = sum(operand.dtype == "float32" and operand.elements == largest for operand in inputs) > 1
    return largest, per_lane * (2 if wide else 1) + instructions * FIXED_CYCLES, instructions
