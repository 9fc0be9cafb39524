"""What a config.json comes to, whatever it holds."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuronqa.catalog.config import stored_text
from neuronqa.domain.catalog import ListingStatus
from neuronqa.domain.workload import HfSpec, Workload
from neuronqa.workload.planner import answer, larger, plan_config

LLAMA: dict[str, Any] = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096}

BODY = json.dumps({**LLAMA, "rope_scaling": {"rope_type": "yarn", "factor": 2.0}, "id2label": {"0": "a"}}).encode()


def damaged(place: int, length: int, by: bytes) -> bytes:
    """A body in which some bytes are others."""
    return BODY[:place] + by + BODY[place + length :]


def plan(**fields: Any) -> Any:
    return plan_config(json.dumps(fields))


def test_a_known_type_becomes_a_workload_of_its_class() -> None:
    found = plan(**LLAMA)
    assert found.status is ListingStatus.ELIGIBLE
    assert (found.model_type, found.class_name, found.task) == ("llama", "LlamaForCausalLM", "causal-lm")
    assert isinstance(found.workload, Workload)


def test_a_config_without_model_type_is_decided_by_its_class() -> None:
    found = plan(architectures=["LlamaForCausalLM"], hidden_size=32)
    assert (found.status, found.model_type) == (ListingStatus.ELIGIBLE, "llama")


def test_a_config_without_model_type_and_known_class_is_invalid() -> None:
    found = plan(architectures=["HomegrownForCausalLM"], hidden_size=32)
    assert found.status is ListingStatus.CONFIG_INVALID
    assert "no model_type" in found.reason


def test_an_unknown_type_names_itself_and_the_installed_version() -> None:
    found = plan(model_type="gemma99_unified", vocab_size=97)
    assert found.status is ListingStatus.UNKNOWN_MODEL_TYPE
    assert "gemma99_unified" in found.reason
    assert "transformers 5" in found.reason


def test_code_of_a_repository_is_never_run() -> None:
    found = plan(model_type="homegrown", auto_map={"AutoConfig": "evil.Config"})
    assert found.status is ListingStatus.REMOTE_CODE


def test_code_beside_a_known_type_is_left_alone() -> None:
    found = plan(**LLAMA, auto_map={"AutoModelForCausalLM": "evil.Model"})
    assert found.status is ListingStatus.ELIGIBLE
    assert "auto_map" not in found.workload.spec.config


def test_a_class_of_another_type_gives_way_to_the_types_own() -> None:
    found = plan(**LLAMA | {"architectures": ["BertForMaskedLM"]})
    assert found.class_name == "LlamaForCausalLM"


def test_quantised_weights_are_no_twin_of_dense_ones() -> None:
    found = plan(**LLAMA, quantization_config={"quant_method": "gptq"})
    assert found.status is ListingStatus.QUANTIZED
    assert found.kernel_key == ""


def test_an_old_rope_block_is_invalid_with_the_librarys_words() -> None:
    found = plan(model_type="phi3", rope_scaling={"type": "su", "short_factor": [1] * 4, "long_factor": [1] * 4})
    assert found.status is ListingStatus.CONFIG_INVALID
    assert found.reason


def test_infinity_survives_as_strict_json() -> None:
    found = plan_config('{"model_type":"mamba2","time_step_limit":[0.0,Infinity]}')
    text = json.dumps(found.to_json(), allow_nan=False)
    assert '{"__float__": "Infinity"}' in text
    assert Workload.from_json(json.loads(text)["workload"]) == found.workload


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"hidden_size": None}, ListingStatus.CONFIG_INVALID),
        ({"hidden_size": "32"}, ListingStatus.CONFIG_INVALID),
        ({"num_attention_heads": 0}, ListingStatus.CONFIG_INVALID),
        ({"layer_types": ["no such kind"]}, ListingStatus.CONFIG_INVALID),
        ({"num_hidden_layers": 10**9}, ListingStatus.TOO_LARGE),
        ({"num_labels": 10**9}, ListingStatus.TOO_LARGE),
        ({"vocab_size": 2**40}, ListingStatus.ELIGIBLE),
    ],
)
def test_each_odd_config_has_its_own_status(fields: dict[str, Any], status: ListingStatus) -> None:
    assert plan(**LLAMA | fields).status is status


def test_a_huge_vocabulary_is_cut_before_anything_is_built() -> None:
    assert plan(**LLAMA, vocab_size=2**40).workload.spec.config["vocab_size"] == 512


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["hidden_size", "layer_types", "rope_scaling", "id2label", "dtype"]) | st.text(), JSON
    )
)
def test_no_config_ends_the_planner(fields: dict[str, Any]) -> None:
    text = json.dumps({**fields, "model_type": "llama"})
    json.dumps(answer(json.dumps({"hash": "h", "text": text})), allow_nan=False)


@given(
    st.binary(max_size=200) | st.builds(damaged, st.integers(0, len(BODY)), st.integers(0, 9), st.binary(max_size=9))
)
def test_any_bytes_in_place_of_a_config_have_a_status_and_a_reason(body: bytes) -> None:
    found = plan_config(stored_text(body))
    assert (found.status is ListingStatus.ELIGIBLE) == (found.reason == "")
    assert found.reason.isprintable()
    assert len(found.reason) < 250
    json.dumps(answer(json.dumps({"hash": "h", "text": stored_text(body)})), allow_nan=False)


@given(st.text())
def test_no_line_ends_the_planner(line: str) -> None:
    assert answer(line)["status"] in {"config_malformed", "config_invalid"}


def test_the_process_answers_every_line_and_prints_nothing_else() -> None:
    lines = [json.dumps({"hash": "a", "text": json.dumps(LLAMA)}), "garbage", json.dumps({"hash": "b", "text": "[]"})]
    done = subprocess.run(
        [sys.executable, "-m", "neuronqa.workload.planner"],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(a["hash"], a["status"]) for a in answers] == [
        ("a", "eligible"),
        ("", "config_malformed"),
        ("b", "config_malformed"),
    ]


def test_the_audit_runs_the_same_config_one_level_larger() -> None:
    text = json.dumps(LLAMA | {"vocab_size": 32000})
    small = plan_config(text).workload
    assert small is not None
    large = larger(small, text)
    assert large is not None
    assert isinstance(small.spec, HfSpec)
    assert isinstance(large.spec, HfSpec)
    assert (small.spec.level, large.spec.level) == (0, 1)
    assert large.spec.config["vocab_size"] == 32000
    assert large.spec.config["num_hidden_layers"] == 4
    assert large.spec.config["head_dim"] == 128
