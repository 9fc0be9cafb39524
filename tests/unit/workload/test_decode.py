"""Config texts, honest and hostile."""

from __future__ import annotations

import math

import pytest

from neuronqa.workload.decode import DEPTH_LIMIT, Malformed, decode


def test_an_object_is_read() -> None:
    assert decode('{"model_type": "llama", "hidden_size": 32}') == {"model_type": "llama", "hidden_size": 32}


def test_a_byte_order_mark_is_accepted() -> None:
    assert decode('\ufeff{"a": 1}') == {"a": 1}


def test_bare_infinity_and_nan_are_accepted() -> None:
    found = decode('{"time_step_limit": [0.0, Infinity], "eps": NaN, "low": -Infinity}')
    assert found["time_step_limit"] == [0.0, math.inf]
    assert math.isnan(found["eps"])
    assert found["low"] == -math.inf


def test_float_objects_of_transformers_are_accepted() -> None:
    assert decode('{"limit": [0.0, {"__float__": "Infinity"}]}') == {"limit": [0.0, math.inf]}


def test_of_repeated_keys_the_last_wins() -> None:
    assert decode('{"a": 1, "a": 2}') == {"a": 2}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("null", "a JSON null, not an object"),
        ("[]", "a JSON array, not an object"),
        ("3", "a JSON number, not an object"),
        ('"llama"', "a JSON string, not an object"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0", "a Git LFS pointer, not the file itself"),
        ("<!DOCTYPE html><html></html>", "a web page, not JSON"),
        ('{"hidden_size": 32', "not JSON: Expecting ',' delimiter at line 1 column 19"),
        ('{"name": "caf\ufffd}', "not UTF-8"),
        ('{"a": {"__float__": "huge"}}', "__float__ must be one of ['-Infinity', 'Infinity', 'NaN'], not 'huge'"),
        ('{"a": ' + "9" * 5000 + "}", "an integer of 5000 digits"),
        ("[" * 3000 + "]" * 3000, f"nested deeper than {DEPTH_LIMIT} levels"),
    ],
)
def test_what_is_no_config_is_malformed_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(Malformed) as raised:
        decode(text)
    assert str(raised.value) == reason


def test_brackets_inside_strings_do_not_nest() -> None:
    assert decode('{"template": "' + "[" * 1000 + '\\"{"}')["template"].count("[") == 1000
