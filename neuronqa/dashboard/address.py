"""The URL of a page: every filter is in it, and every link on the page is a change to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlencode

from neuronqa.db.browse.listing import PAGE, Ask
from neuronqa.errors import BadInput

OURS: Final = ("sweep", "q", "sort", "after", "limit", "lane", "weight", "base", "head")
"""Parameters that are no filters."""
FORMATS: Final = ("json", "csv", "parquet")
MOST: Final = 500
"""Rows of one page."""


@dataclass(frozen=True)
class Address:
    """A path and what is asked of it."""

    path: str
    pairs: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        query = urlencode(self.pairs, errors="backslashreplace")
        return quote(self.path, safe="/:", errors="backslashreplace") + (f"?{query}" if query else "")

    def value(self, name: str) -> str:
        """The last value of a parameter; empty where there is none."""
        return next((value for key, value in reversed(self.pairs) if key == name), "")

    def values(self, name: str) -> tuple[str, ...]:
        return tuple(value for key, value in self.pairs if key == name)

    def put(self, name: str, value: str) -> Address:
        """With one value in place of those it has; an empty one drops the parameter. Starts at the first page."""
        kept = tuple(pair for pair in self.pairs if pair[0] not in (name, "after"))
        return Address(self.path, (*kept, (name, value)) if value else kept)

    def toggle(self, name: str, value: str) -> Address:
        """With the value if it was not asked for, without it if it was."""
        pair = (name, value)
        kept = tuple(one for one in self.pairs if one[0] != "after")
        without = tuple(one for one in kept if one != pair)
        return Address(self.path, without if pair in kept else (*kept, pair))

    def page(self, cursor: str) -> Address:
        """The page behind a cursor."""
        return Address(self.path, (*(pair for pair in self.pairs if pair[0] != "after"), ("after", cursor)))

    def bare(self) -> Address:
        """Without filters, search and cursor: the sweep alone."""
        return Address(self.path, tuple(pair for pair in self.pairs if pair[0] == "sweep"))

    def form(self, *without: str) -> list[tuple[str, str]]:
        """The parameters a form carries along."""
        return [pair for pair in self.pairs if pair[0] not in (*without, "after")]

    def as_format(self, name: str) -> Address:
        """The same page as data."""
        path = "/overview" if self.path == "/" else self.path
        pairs = tuple(pair for pair in self.pairs if pair[0] not in ("after", "limit") or name == "json")
        return Address(f"{path}.{name}", pairs)

    def sorted_by(self, name: str) -> Address:
        """Sorted by a column, or the other way round if it is already."""
        return self.put("sort", f"-{name}" if self.value("sort") == name else name)

    @property
    def filters(self) -> Mapping[str, tuple[str, ...]]:
        names = dict.fromkeys(key for key, _ in self.pairs if key not in OURS)
        return {name: self.values(name) for name in names}

    @property
    def ask(self) -> Ask:
        """What is asked of the page's listing. Raises BadInput for a limit that is no number."""
        return Ask(
            filters=self.filters,
            search=self.value("q").strip(),
            sort=self.value("sort"),
            after=self.value("after"),
            limit=_limit(self.value("limit")),
        )


def _limit(text: str) -> int:
    if not text:
        return PAGE
    if not text.isdecimal() or not 1 <= int(text[:6]) <= MOST:
        raise BadInput(f"limit must be a number from 1 to {MOST}")
    return int(text)


def address(path: str, pairs: Sequence[tuple[str, str]]) -> Address:
    """What a request asks for: its path without the format it wants, and its query."""
    stem, dot, ending = path.rpartition(".")
    plain = stem if dot and ending in FORMATS else path
    return Address("/" if plain == "/overview" else plain, tuple((key, value) for key, value in pairs if value))
