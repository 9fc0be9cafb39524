"""The experiment that the field's check fails: any one gradient of a model replaced by something else."""

from __future__ import annotations

import pytest

from tests.benchmark.gradient_power import CORRUPTIONS, main
from tests.integration.roles.families import FAMILIES

FEW = ["llama", "resnet"]


@pytest.mark.parametrize("names", [FEW, pytest.param(list(FAMILIES), marks=pytest.mark.full)], ids=["two", "ten"])
def test_every_corrupted_gradient_that_can_decide_is_noticed(names: list[str]) -> None:
    figures = main(names)
    for variant in ("eager/fp32/train", "eager/bf16/train"):
        found = figures[variant]
        assert found["exempt"] <= 0.1 * found["tensors"]
        for name in CORRUPTIONS:
            assert found[name]["ours"] == 1.0, (variant, name)
            assert found[name]["field"] < 0.9, "the comparison is pointless if the field's check notices as much"
