"""Any byte string becomes a stored text, and a stored text is a config or has a reason why not."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuronqa.catalog import config

LLAMA = {"model_type": "llama", "hidden_size": 32, "_name_or_path": "a/b", "transformers_version": "4.40"}


def reason(body: bytes) -> str:
    with pytest.raises(config.MalformedConfig) as caught:
        config.parse(config.stored_text(body))
    return str(caught.value)


@given(st.binary(max_size=400))
def test_any_byte_string_has_a_text_that_keeps_it_or_its_meaning(body: bytes) -> None:
    text = config.stored_text(body)
    try:
        value = config.parse(text)
    except config.MalformedConfig:
        assert reason(body) != ""
        assert text.encode("utf-8", "surrogateescape") in (body, body.removeprefix(b"\xef\xbb\xbf"))
    else:
        assert config.stored_text(text.encode()) == text
        assert isinstance(value, dict)


def test_names_versions_and_label_texts_are_left_out() -> None:
    labelled = {**LLAMA, "id2label": {"0": "cat", "1": "dog"}, "label2id": {"cat": 0, "dog": 1}}
    assert json.loads(config.stored_text(json.dumps(labelled).encode())) == {
        "model_type": "llama",
        "hidden_size": 32,
        "id2label": {"0": "LABEL_0", "1": "LABEL_1"},
    }


def test_two_fine_tunes_of_one_shape_have_one_text() -> None:
    one = json.dumps({**LLAMA, "_name_or_path": "me/tuned"}).encode()
    other = json.dumps(dict(reversed(LLAMA.items())), indent=2).encode()
    assert config.text_hash(config.stored_text(one)) == config.text_hash(config.stored_text(other))


def test_bare_infinity_is_stored_as_strict_json_and_comes_back() -> None:
    text = config.stored_text(b'{"model_type": "mamba2", "time_step_limit": [0.0, Infinity], "x": NaN}')
    strict = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} in strict JSON"))
    assert strict["time_step_limit"] == [0.0, {"__float__": "Infinity"}]
    assert config.parse(text)["time_step_limit"] == [0.0, math.inf]
    assert math.isnan(config.parse(text)["x"])


def test_a_byte_order_mark_is_accepted() -> None:
    body = json.dumps(LLAMA).encode()
    assert config.stored_text(b"\xef\xbb\xbf" + body) == config.stored_text(body)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "empty"),
        (b" \n\t", "empty"),
        (json.dumps(LLAMA).encode()[:20], "not JSON"),
        (b'{"author": "Jos\xe9"}', "not UTF-8 at character 15"),
        (json.dumps(LLAMA).encode("utf-16"), "not UTF-8"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 10\n", "Git LFS"),
        (b"<!DOCTYPE html><html></html>", "HTML"),
        (b"null", "null"),
        (b"[1]", "array"),
        (b'"llama"', "string"),
        (b"1e5", "number"),
        (b"true", "boolean"),
        (b'{"a":' * 3000 + b"1" + b"}" * 3000, "nested deeper"),
        (b'{"a":' * 70 + b"1" + b"}" * 70, "nested deeper"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"),
        (b'{"a": "' + b"x" * config.BODY_LIMIT + b'"}', "longer"),
    ],
)
def test_what_is_no_config_says_why(body: bytes, said: str) -> None:
    assert said in reason(body)


def test_the_last_of_two_equal_keys_wins() -> None:
    assert config.parse(config.stored_text(b'{"hidden_size": 1, "hidden_size": 2}')) == {"hidden_size": 2}
