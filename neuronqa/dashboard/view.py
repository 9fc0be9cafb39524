"""What a page is before it is rendered: a template, the data its JSON twin gives, and its table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection

from neuronqa.dashboard.address import Address
from neuronqa.db import queries
from neuronqa.db.browse.listing import Listing, Page, browse, glance
from neuronqa.db.queries import SweepRow

Record = Mapping[str, Any]


class Form(StrEnum):
    """How a column is shown."""

    TEXT = "text"
    MONO = "mono"
    COUNT = "count"
    BYTES = "bytes"
    TIME = "time"
    RATIO = "ratio"
    OUTCOME = "outcome"
    SHAPES = "shapes"


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table: `name` is the row's key and, where the listing sorts by it, the sort's name."""

    name: str
    title: str
    form: Form = Form.TEXT
    href: Callable[[Record, str], str] | None = None
    """From the row and the sweep's name."""

    @property
    def right(self) -> bool:
        return self.form in (Form.COUNT, Form.BYTES, Form.RATIO, Form.TIME)


@dataclass(frozen=True, kw_only=True)
class Table:
    """A listing with the columns a page shows of it."""

    listing: Listing
    columns: tuple[Column, ...]
    page: Page
    caption: str
    path: str
    """Where the whole of it is browsed and exported."""


@dataclass(frozen=True, kw_only=True)
class View:
    """A page."""

    template: str
    title: str
    data: Mapping[str, Any]
    """JSON, but for its `schema_version`."""
    show: Mapping[str, Any] = field(default_factory=dict)
    """What the template needs besides."""
    table: Table | None = None
    """What CSV and Parquet export."""


@dataclass(frozen=True)
class Scope:
    """A request to a page: the database as it may be read, and the URL."""

    db: Connection
    address: Address

    @cached_property
    def sweep(self) -> SweepRow:
        """The sweep the URL names, or the newest. Raises BadInput for none."""
        return queries.sweep(self.db, self.address.value("sweep") or None)

    def table(self, listing: Listing, columns: Sequence[Column], caption: str) -> Table:
        """The page of `listing` that the URL asks for."""
        page = browse(self.db, listing, self.address.ask)
        return Table(listing=listing, columns=tuple(columns), page=page, caption=caption, path=self.address.path)

    def part(self, listing: Listing, columns: Sequence[Column], caption: str, whole: Address, limit: int = 10) -> Table:
        """The first rows of a listing that is browsed in full at `whole`."""
        page = glance(self.db, listing, _first(whole, limit).ask)
        return Table(listing=listing, columns=tuple(columns), page=page, caption=caption, path=str(whole))


def _first(whole: Address, limit: int) -> Address:
    return whole.put("limit", str(limit))


def listed(table: Table) -> dict[str, Any]:
    """A table as JSON."""
    page = table.page
    return {
        "rows": page.rows,
        "count": page.count.n,
        "count_capped": page.count.capped,
        "hidden": page.hidden.n,
        "facets": {name: [{"value": v, "count": n} for v, n in values] for name, values in page.facets.items()},
        "next": page.next,
    }


def to(path: str, column: str, parameter: str = "") -> Callable[[Record, str], str]:
    """A link made from one of the row's values: into the path, or as a parameter of it."""

    def href(row: Record, sweep: str) -> str:
        value = str(row[column])
        if parameter:
            return str(Address(path, ((parameter, value), ("sweep", sweep))))
        return f"{path}/{quote(value, safe=':', errors='backslashreplace')}?sweep={quote(sweep)}"

    return href
