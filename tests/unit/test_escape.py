"""Strings in databases: what PostgreSQL refuses is escaped, and everything reads back."""

from hypothesis import example, given
from hypothesis import strategies as st

from neuronqa.db.columns import escape, unescape


@given(st.text(st.characters()))
@example("\\")
@example("\\\\0000")
@example("a\0b")
@example("\ud800")
@example("é\\u1234\0\udfff")
@example("\\00")
def test_every_string_survives_the_escape(text: str) -> None:
    stored = escape(text)
    assert "\0" not in stored
    stored.encode("utf-8")
    assert unescape(stored) == text


@given(st.text(st.characters()), st.text(st.characters()))
def test_two_strings_are_never_stored_as_one(one: str, other: str) -> None:
    assert (escape(one) == escape(other)) == (one == other)
