"""Content hashes name values: the same on every machine, sensitive to what matters and to nothing else."""

import json
import math
from collections import OrderedDict
from enum import IntEnum, StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuronqa.domain.identity import ID_LENGTH, canonical_json, content_hash, relaxed, strict

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters()), inner, max_size=4),
    max_leaves=12,
)


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    BIG = 3


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "74234e98afe7498fb5daf1f36ac2d78a"),
        ({}, "44136fa355b3678a1146ad16f7e8649e"),
        ({"b": [1, 2.5, True], "a": "é"}, "2e4d55bf35e65eca9c6503e01fd72b96"),
        ({"x": math.nan, "y": math.inf, "z": -math.inf}, "c72b2fe0ac241dec9af8935e4e502b84"),
        ("\ud800\0", "2890d3fafbba099238fd1453893130c8"),
        (10**40, "1c76479af2b5d3fc0c76b1bd37616477"),
    ],
)
def test_hashes_never_change(value: Any, expected: str) -> None:
    assert content_hash(value) == expected


def test_the_canonical_form_is_written_out() -> None:
    value = {"z": math.nan, "a": (1, -0.0, 1e300), "é": Colour.RED, "n": {Size.BIG: None}}
    assert canonical_json(value) == ('{"a":[1,-0.0,1e+300],"n":{"3":null},"z":{"__float__":"NaN"},"\\u00e9":"red"}')


@given(JSON_VALUES)
def test_the_order_of_keys_does_not_matter(value: Any) -> None:
    def turned(item: Any) -> Any:
        if isinstance(item, dict):
            return OrderedDict((key, turned(item[key])) for key in reversed(item))
        return [turned(one) for one in item] if isinstance(item, list) else item

    assert content_hash(turned(value)) == content_hash(value)


@given(JSON_VALUES)
def test_a_strict_value_is_plain_json_and_reads_back(value: Any) -> None:
    text = canonical_json(value)
    assert text.isascii()
    read = json.loads(text, parse_constant=pytest.fail)
    assert canonical_json(relaxed(read)) == text
    assert len(content_hash(value)) == ID_LENGTH


@pytest.mark.parametrize("number", [math.inf, -math.inf, 0.1, -0.0, 5e-324, 1.7976931348623157e308])
def test_floats_read_back_to_the_bit(number: float) -> None:
    read = relaxed(json.loads(canonical_json(number)))
    assert math.copysign(1, read) == math.copysign(1, number)
    assert read == number


def test_nan_reads_back() -> None:
    assert math.isnan(relaxed(strict(math.nan)))


@pytest.mark.parametrize("lookalike", ["1.5", "nan", "inf", "evil", 3, None, ["NaN"], {"__float__": "NaN"}])
def test_only_the_three_words_read_back_as_floats(lookalike: Any) -> None:
    """A config may hold the marker itself, with anything below it."""
    value = {"__float__": lookalike}
    assert canonical_json(relaxed(value)) == canonical_json(value)


def test_different_values_have_different_names() -> None:
    values = [None, False, 0, 0.0, "", "0", [], {}, [0], {"0": 0}, math.nan, "NaN", True, 1, 1.0, [[0]], "\0"]
    assert len({content_hash(value) for value in values}) == len(values)


def test_a_set_is_named_by_what_is_in_it() -> None:
    assert canonical_json({"s": {"b", "a", "c"}}) == '{"s":["a","b","c"]}'
    assert content_hash({3, 1, 2}) == content_hash([1, 2, 3])


@pytest.mark.parametrize("value", [object(), b"bytes", 1j, {1.5: 1}, {None: 1}, {True: 1}, {(1,): 1}])
def test_what_json_cannot_hold_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        content_hash(value)


def test_keys_that_collide_as_text_are_refused() -> None:
    with pytest.raises(TypeError, match="same text"):
        strict({1: "a", "1": "b"})
