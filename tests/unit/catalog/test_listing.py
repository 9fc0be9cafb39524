"""Whatever the Hub lists becomes facts a catalog can hold, and no id becomes an address or a path it should not."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neuronqa.catalog import rows, status
from neuronqa.catalog.hub import listing
from neuronqa.domain.catalog import ListingStatus

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
MEMBERS = st.sampled_from([*listing.EXPAND, "id", "_id", "modelId", "private"])
HOSTILE = (
    "..", ".", "a/..", "../a", "a/../b", "/etc/passwd", "a//b", "a/b/c", "a\\b", "-rf", "a b", "a\0b", "a\n",
    "a%2e%2e/b", "a?b", "a#b", "a@b:c", "\u202eb", "\ud800", "caf\u00e9", "$(reboot)",
    "`id`", "a;b", "x" * 97, "a" * 10_000,
)  # fmt: skip


@given(JSON | st.dictionaries(MEMBERS, JSON))
def test_any_item_is_no_entry_or_one_that_can_be_stored(item: Any) -> None:
    found = listing.facts(item, authenticated=False)
    if found is not None:
        entry = rows.entry_of({**found, "rank": 1})
        assert rows.parse_entry(rows.entry_line(entry)) == entry
        decided = status.from_facts(entry)
        assert decided is None or decided[0] in ListingStatus


@given(st.text(st.characters(), min_size=1))
@example("a/b")
@example("x" * 96)
def test_an_address_has_the_parts_of_its_id_and_no_other(name: str) -> None:
    if listing.fetchable(name):
        address = urlsplit(f"http://hub/{quote(name, safe='/')}/resolve/main/config.json")
        assert unquote(address.path).split("/") == ["", *name.split("/"), "resolve", "main", "config.json"]
        assert not {"", ".", ".."} & set(name.split("/"))
        assert name.isascii()
        assert name.isprintable()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_id_is_never_part_of_an_address(name: str) -> None:
    assert not listing.fetchable(name)
    found = listing.facts({"id": name, "library_name": "transformers"}, authenticated=True)
    assert found is not None
    assert found["absence"].startswith("fetch-error")
    decided = status.from_facts(rows.entry_of({**found, "rank": 1}))
    assert decided is not None
    assert decided[0] is ListingStatus.FETCH_ERROR
