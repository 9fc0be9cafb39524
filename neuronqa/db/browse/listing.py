"""A listing: rows one can filter, search, sort, count by facet and page through, all of it asked in a URL.

Pages are cut by cursor (the sort value and the key of the last row), so that the thousandth costs what the first does.
Counts stop at :data:`COUNTED`, and say so.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Boolean, ColumnElement, Connection, Integer, Select, and_, func, literal, or_, select

from neuronqa.errors import BadInput

COUNTED: Final = 10_000
FACET_VALUES: Final = 30
PAGE: Final = 50
STREAMED: Final = 1000
Rows = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What a person asks of a listing."""

    filters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Any of the values, for every name."""
    search: str = ""
    sort: str = ""
    """A name of the listing's sorts, with `-` before it for the other direction; empty for the first."""
    after: str = ""
    limit: int = PAGE


@dataclass(frozen=True, kw_only=True)
class Sort:
    """An order: by a column that is never null."""

    column: ColumnElement[Any]
    descending: bool = False


@dataclass(frozen=True, kw_only=True)
class Count:
    """How many, as far as was counted."""

    n: int
    capped: bool = False

    def __str__(self) -> str:
        return f"{self.n:,}+" if self.capped else f"{self.n:,}"


Facets = dict[str, list[tuple[str, int]]]


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Rows and what may be asked of them."""

    name: str
    rows: Select[Any]
    """Labelled columns over their joins, with what is always asked in its WHERE."""
    key: ColumnElement[Any]
    """Unique; breaks ties."""
    sorts: Mapping[str, Sort]
    """The first is the default."""
    filters: Mapping[str, ColumnElement[Any]] = field(default_factory=dict)
    narrowed: Mapping[str, Callable[[str], ColumnElement[bool]]] = field(default_factory=dict)
    """Filters that are more than a column's value."""
    search: Callable[[str], ColumnElement[bool]] | None = None
    facets: tuple[str, ...] = ()
    tallied: Callable[[Connection, Ask], tuple[Count, Facets] | None] | None = None
    """Count and facets from sums kept before, where those can answer."""
    whole: Callable[[Connection], Count] | None = None
    """How many rows there are without any filter, from sums kept before."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """Some rows of a listing."""

    rows: Rows
    count: Count
    """Of the rows that were asked for."""
    whole: Count
    """Without any filter or search."""
    facets: Facets
    next: str
    """Cursor of the next page; empty on the last."""

    @property
    def hidden(self) -> Count:
        """Rows that the filters leave out."""
        return Count(n=max(0, self.whole.n - self.count.n), capped=self.whole.capped)


def browse(db: Connection, listing: Listing, ask: Ask) -> Page:
    """One page of a listing. Raises BadInput for a sort, filter or cursor it does not know."""
    wanted = _conditions(listing, ask)
    ordered, name = _ordered(listing, ask, wanted)
    found = [dict(row._mapping) for row in db.execute(ordered.limit(ask.limit + 1))]
    shown = found[: ask.limit]
    counted = listing.tallied(db, ask) if listing.tallied else None
    count, facets = counted or (_count(db, listing.rows.where(*wanted)), _facets(db, listing, wanted))
    cursor = _cursor(name, shown[-1]) if len(found) > ask.limit else ""
    whole = count if not wanted else _whole(db, listing)
    return Page(rows=[_plain(row) for row in shown], count=count, whole=whole, facets=facets, next=cursor)


def glance(db: Connection, listing: Listing, ask: Ask) -> Page:
    """The first rows and their count, without what a page that is browsed needs besides."""
    wanted = _conditions(listing, ask)
    ordered, _ = _ordered(listing, ask, wanted)
    rows = [_plain(dict(row._mapping)) for row in db.execute(ordered.limit(ask.limit))]
    counted = listing.tallied(db, ask) if listing.tallied else None
    count = counted[0] if counted else _count(db, listing.rows.where(*wanted))
    return Page(rows=rows, count=count, whole=count, facets={}, next="")


def _whole(db: Connection, listing: Listing) -> Count:
    if listing.tallied and (counted := listing.tallied(db, Ask())):
        return counted[0]
    return listing.whole(db) if listing.whole else _count(db, listing.rows)


def export(db: Connection, listing: Listing, ask: Ask) -> Iterator[dict[str, Any]]:
    """Every row that was asked for, in order, streamed."""
    ordered, _ = _ordered(listing, ask, _conditions(listing, ask))
    for row in db.execute(ordered, execution_options={"yield_per": STREAMED}):
        yield _plain(dict(row._mapping))


def _conditions(listing: Listing, ask: Ask) -> list[ColumnElement[bool]]:
    wanted: list[ColumnElement[bool]] = []
    for name, values in ask.filters.items():
        if name in listing.filters:
            column = listing.filters[name]
            wanted.append(column.in_([_typed(column, name, value) for value in values]))
        elif name in listing.narrowed:
            wanted.append(or_(*(listing.narrowed[name](value) for value in values)))
        else:
            raise BadInput(f"{listing.name} cannot be filtered by {name!r}")
    if ask.search:
        if listing.search is None:
            raise BadInput(f"{listing.name} cannot be searched")
        wanted.append(listing.search(ask.search))
    return wanted


def _typed(column: ColumnElement[Any], name: str, value: str) -> Any:
    """A value of an address as the column holds it: PostgreSQL compares no number with a text."""
    if isinstance(column.type, Boolean):
        return value in ("1", "true")
    if isinstance(column.type, Integer):
        if not (value.isascii() and value.isdecimal() and len(value) < 19):
            raise BadInput(f"{name} is a number, not {value!r:.40}")
        return int(value)
    return value


def _ordered(listing: Listing, ask: Ask, wanted: Sequence[ColumnElement[bool]]) -> tuple[Select[Any], str]:
    asked = ask.sort or next(iter(listing.sorts))
    name = asked.removeprefix("-")
    if name not in listing.sorts:
        raise BadInput(f"{listing.name} cannot be sorted by {name!r}")
    sort = listing.sorts[name]
    falling = sort.descending != asked.startswith("-")
    query = listing.rows.where(*wanted).add_columns(sort.column.label("_sort"), listing.key.label("_key"))
    if ask.after:
        value, key = _read_cursor(ask.after, asked)
        behind = sort.column < value if falling else sort.column > value
        same = and_(sort.column == value, listing.key > key)
        bound = sort.column <= value if falling else sort.column >= value
        query = query.where(bound, or_(behind, same))
    return query.order_by(sort.column.desc() if falling else sort.column, listing.key), asked


def _count(db: Connection, query: Select[Any]) -> Count:
    limited = query.with_only_columns(literal(1).label("one")).limit(COUNTED + 1).subquery()
    n = int(db.execute(select(func.count()).select_from(limited)).scalar_one())
    return Count(n=min(n, COUNTED), capped=n > COUNTED)


def _facets(db: Connection, listing: Listing, wanted: Sequence[ColumnElement[bool]]) -> Facets:
    """Values and how often each is among the first :data:`COUNTED` of the rows that were asked for: one pass."""
    if not listing.facets:
        return {}
    columns = [listing.filters[name].label(f"f{i}") for i, name in enumerate(listing.facets)]
    some = listing.rows.where(*wanted).with_only_columns(*columns).limit(COUNTED).subquery()
    together = select(*some.c, func.count()).group_by(*some.c)
    return facets_of(listing.facets, db.execute(together))


def facets_of(names: Sequence[str], counted: Iterable[Sequence[Any]]) -> Facets:
    """Facets from rows that hold a value for every name and, last, how many have them all."""
    found: dict[str, Counter[str]] = {name: Counter() for name in names}
    for *values, n in counted:
        for name, value in zip(names, values, strict=True):
            found[name][str(value)] += int(n)
    return {
        name: sorted(counter.items(), key=lambda item: (-item[1], item[0]))[:FACET_VALUES]
        for name, counter in found.items()
    }


def _cursor(asked: str, row: Mapping[str, Any]) -> str:
    text = json.dumps([asked, row["_sort"], row["_key"]])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read_cursor(cursor: str, asked: str) -> tuple[Any, Any]:
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        name, value, key = json.loads(text)
    except (binascii.Error, ValueError, TypeError) as error:
        raise BadInput("the page's cursor cannot be read", hint="go back to the first page") from error
    plain = isinstance(value, str | int | float) and isinstance(key, str | int)
    if name != asked or not plain:
        raise BadInput("the page's cursor is of another order", hint="go back to the first page")
    return value, key


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if not name.startswith("_")}
