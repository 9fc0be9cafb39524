"""The modelled cost of operators: right against published figures, monotone, and never faster than memory."""

from __future__ import annotations

import pytest

from neuronqa.device.neuron import profile
from neuronqa.device.neuron.cost.engines import Engine, engine_of
from neuronqa.device.neuron.cost.estimate import Cost, Operand, estimate

TRN2 = profile.load("trn2-sdk2.33").hardware
TRN3 = profile.load("trn3-sdk2.33").hardware


def product(rows: int, depth: int, columns: int, dtype: str = "bfloat16") -> Cost:
    left, right, out = (Operand(shape, dtype) for shape in ((rows, depth), (depth, columns), (rows, columns)))
    return estimate("mm", [left, right], [out], TRN2)


def test_a_large_product_runs_at_the_published_peak() -> None:
    cost = product(4096, 4096, 4096)
    assert cost.flops == 2 * 4096**3
    assert cost.flops / cost.seconds / 1e12 == pytest.approx(2 * 79, rel=0.01)  # TFLOPS of two cores in bfloat16


def test_float32_takes_four_passes() -> None:
    assert product(4096, 4096, 4096, "float32").seconds == pytest.approx(4 * product(4096, 4096, 4096).seconds)


@pytest.mark.parametrize(("size", "tiles"), [(1, 1), (128, 1), (129, 4), (512, 16), (513, 50)])
def test_instructions_count_tiles(size: int, tiles: int) -> None:
    assert product(size, size, size).instructions == tiles


def test_no_operator_is_faster_than_the_memory_it_moves() -> None:
    operand = Operand((8192, 8192), "bfloat16")
    cost = estimate("add", [operand, operand], [operand], TRN2)
    assert cost.seconds >= 3 * operand.nbytes / (TRN2.memory_gbps * 2e9)
    assert estimate("add", [operand, operand], [operand], TRN3).seconds < cost.seconds


@pytest.mark.parametrize(
    ("base", "engine"),
    [
        ("mm", Engine.TENSOR),
        ("convolution_backward", Engine.TENSOR),
        ("add", Engine.VECTOR),
        ("mul_", Engine.VECTOR),
        ("gelu", Engine.SCALAR),
        ("_softmax", Engine.SCALAR),
        ("embedding", Engine.GPSIMD),
        ("sort", Engine.GPSIMD),
        ("_copy_from", Engine.DMA),
        ("view", Engine.NONE),
        ("unheard_of", Engine.VECTOR),
    ],
)
def test_each_operator_has_its_engine(base: str, engine: Engine) -> None:
    assert engine_of(base) is engine


def test_convolution_is_the_product_it_is_lowered_to() -> None:
    image, weight, out = Operand((2, 64, 32, 32), "bfloat16"), Operand((128, 64, 3, 3), "bfloat16"), (2, 128, 32, 32)
    cost = estimate("convolution", [image, weight], [Operand(out, "bfloat16")], TRN2)
    assert cost.flops == 2 * 128 * (64 * 9) * (2 * 32 * 32)


def test_metadata_costs_nothing() -> None:
    assert estimate("view", [Operand((4,), "float32")], [Operand((2, 2), "float32")], TRN2) == Cost(Engine.NONE)
