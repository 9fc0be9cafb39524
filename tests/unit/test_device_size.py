"""Whether a model fits: the fewest devices that hold it, and what stands in the way where none does."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from neuronqa.device.neuron import profile
from neuronqa.device.neuron.cost.measure import demand
from neuronqa.device.neuron.cost.size import Demand, fit
from neuronqa.domain.outcome import Kind
from neuronqa.worker.sizing import sized

HARDWARE = replace(
    profile.load("trn2-sdk2.33").hardware,
    memory_bytes=1000,
    instance_devices=4,
    instruction_limit=50,
    compile_limit_s=0,
)
SMALL = Demand(weights=100, buffers=10, activations=200, operators=10, instructions=40)


@pytest.mark.parametrize(
    ("changes", "kind", "devices"),
    [
        ({}, Kind.FIT_PASS, 1),
        ({"weights": 400}, Kind.FIT_PASS, 2),
        ({"weights": 900}, Kind.FIT_PASS, 4),
        ({"weights": 1000}, Kind.FIT_MEMORY, 4),
        ({"buffers": 2000}, Kind.FIT_MEMORY, 4),
        ({"instructions": 150}, Kind.FIT_PASS, 4),
        ({"instructions": 300}, Kind.FIT_INSTRUCTIONS, 4),
    ],
)
def test_a_model_is_sharded_as_far_as_it_must_and_no_further(changes: dict[str, Any], kind: Kind, devices: int) -> None:
    answer = fit(replace(SMALL, **changes), HARDWARE, 0)
    assert (answer.kind, answer.devices) == (kind, devices)
    assert answer.modelled
    assert "modelled" in answer.words


def test_a_compilation_may_take_too_long() -> None:
    assert fit(SMALL, HARDWARE, compile_limit_s=2.6).kind is Kind.FIT_COMPILE_TIME
    assert fit(SMALL, HARDWARE, compile_limit_s=2.8).kind is Kind.FIT_PASS


def test_the_ideal_device_holds_anything() -> None:
    huge = replace(SMALL, weights=10**15, instructions=10**12)
    assert fit(huge, profile.load("ideal").hardware, 0).devices == 1


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"x": self.layers(x)}


def test_a_step_on_the_meta_device_is_added_up() -> None:
    with torch.device("meta"):
        model, x = Two(), torch.empty(64, 256)
    found = demand(model, {"x": x}, HARDWARE)
    weights = 4 * (256 * 512 + 512 + 512 * 256 + 256)
    assert (found.weights, found.state) == (weights, 4 * weights)
    assert found.activations == 4 * (64 * 256 + 2 * 64 * 512)  # the input, and both sides of the GELU
    assert found.instructions > 4 * (2 + 4)  # two products of 2 and 4 tiles, in four passes
    assert found.partial == ()


def test_what_asks_for_values_is_partial() -> None:
    class Asking(Two):
        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return super().forward(x) if x.sum() > 0 else {}

    with torch.device("meta"):
        model, x = Asking(), torch.empty(64, 256)
    assert demand(model, {"x": x}, HARDWARE).partial == ("activations",)
    assert demand(model, None, HARDWARE).partial == ("activations",)


LLAMA_8B = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": False,
}


def test_a_listed_model_is_sized_from_its_config() -> None:
    answer = sized(json.dumps(LLAMA_8B), "trn2-sdk2.33")
    assert answer["parameters"] == pytest.approx(8.03e9, rel=0.001)
    assert (answer["kind"], answer["devices"]) == ("fit:pass", 4)
    assert answer["demand"]["partial"] == ()
    assert sized(json.dumps(LLAMA_8B), "trn3-sdk2.33")["devices"] < 4
    assert "error" in sized("{}", "ideal")
