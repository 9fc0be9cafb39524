"""Recipes and excuses: each is of a family there is, and none contradicts another."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from neuronqa.domain.workload import HfSpec
from neuronqa.workload import architectures, recipes
from neuronqa.workload.examples import example
from neuronqa.workload.excuses import _UNREACHABLE, excuse
from neuronqa.workload.levels import Level
from neuronqa.workload.planner import plan_config
from neuronqa.workload.recipes.recipe import Recipe, Shrunk, fixed
from neuronqa.workload.shrink import shrink
from neuronqa.workload.weights import enliven


def test_every_recipe_is_of_a_known_family_and_says_why() -> None:
    assert [family for family in recipes.table() if not architectures.is_known(family)] == []
    assert [family for family, recipe in recipes.table().items() if not recipe.reason] == []


def test_every_excuse_is_of_a_known_family() -> None:
    named = {family for families, _, _ in _UNREACHABLE for family in families.split("|") if family}
    assert [family for family in sorted(named) if not architectures.is_known(family)] == []


def test_an_excuse_is_of_its_family_alone() -> None:
    assert excuse("detr", "model.decoder.layers.0.self_attn.k_proj.weight")
    assert not excuse("bart", "model.decoder.layers.0.self_attn.k_proj.weight")
    assert not excuse("detr", "model.decoder.layers.1.self_attn.k_proj.weight")


def test_recipes_of_one_family_are_joined_unless_they_say_the_same_thing() -> None:
    one = Recipe(families=("a",), reason="first", shrink=fixed(width=1), completion={"x": 1})
    other = Recipe(families=("a",), reason="second", completion={"y": 2})
    joined = recipes._joined("a", one, other)
    assert (joined.reason, joined.completion, joined.shrink) == ("first; second", {"x": 1, "y": 2}, one.shrink)
    with pytest.raises(ValueError, match="two recipes for the shrink of a"):
        recipes._joined("a", one, Recipe(families=("a",), reason="third", shrink=fixed(width=2)))


def test_a_recipe_sets_only_fields_that_are_there() -> None:
    small: dict[str, Any] = {"width": 8}
    fixed(width=4, depth=2)(Shrunk({}, small, small, Level.SMALL))
    assert small == {"width": 4}


def test_stages_that_are_read_stay_within_the_layers_that_stay() -> None:
    stages = ["stem", *(f"stage{number}" for number in range(1, 13))]
    config = {"model_type": "dinov2", "hidden_size": 384, "num_attention_heads": 6, "num_hidden_layers": 12}
    small = shrink({**config, "stage_names": stages, "out_indices": [9, 10, 11, 12]}, Level.SMALL)
    assert (small["num_hidden_layers"], small["out_indices"]) == (4, [1, 2, 3, 4])
    other = shrink({**config, "stage_names": stages[:5], "out_indices": [1, 2, 3, 4]}, Level.SMALL)
    assert other["out_indices"] == [1, 2, 3, 4]


def test_a_stack_of_sound_convolutions_stays_finite() -> None:
    stack = nn.Sequential(*(nn.Conv1d(16, 16, 7, padding=3) for _ in range(40)))
    enliven(stack, 0)
    wave = torch.randn(1, 16, 64, generator=torch.Generator().manual_seed(0))
    for layer in stack:
        wave = wave + layer(wave)
    assert float(wave.abs().max()) < 1e6


def test_a_norm_that_starts_at_nothing_lets_something_through() -> None:
    norm = nn.BatchNorm2d(8)
    nn.init.normal_(norm.weight, std=0.02)
    enliven(nn.Sequential(norm), 0)
    assert float(norm.weight.min()) > 0.5


def test_widths_that_no_name_ties_stay_tied() -> None:
    codec = small_config("xcodec", "XcodecModel")
    parts = (codec["acoustic_model_config"], codec["semantic_model_config"])
    assert codec["codebook_dim"] == sum(part["hidden_size"] for part in parts)
    layout = small_config("pp_doclayout_v3", "PPDocLayoutV3Model")
    assert [layout["x4_feat_dim"], *layout["encoder_in_channels"]] == layout["backbone_config"]["stage_out_channels"]


def small_config(model_type: str, class_name: str) -> dict[str, Any]:
    architecture = architectures.find(model_type, class_name)
    assert architecture is not None
    workload = plan_config(example(architecture)).workload
    assert workload is not None
    assert isinstance(workload.spec, HfSpec)
    return dict(workload.spec.config)
