"""A table as a file: CSV without formulas, or Parquet; every row that was asked for, streamed."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from sqlalchemy import Engine

from neuronqa.dashboard.plain import cell, visible
from neuronqa.db.browse.listing import Ask, Listing, export
from neuronqa.errors import EnvironmentFault

BATCH: Final = 2000


def as_csv(engine: Engine, listing: Listing, ask: Ask) -> Iterator[bytes]:
    """UTF-8, with a header."""
    names = columns(listing)
    with engine.connect() as db:
        rows = export(db, listing, ask)
        yield _lines([names])
        while batch := list(islice(rows, BATCH)):
            yield _lines([[cell(_flat(row[name])) for name in names] for row in batch])


def as_parquet(engine: Engine, listing: Listing, ask: Ask) -> bytes:
    """One file, in row groups; text stays text there, so nothing but what cannot be text is changed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise EnvironmentFault("Parquet needs pyarrow", hint="pip install 'neuronqa[parquet]'") from error
    sink = io.BytesIO()
    with engine.connect() as db:
        rows = export(db, listing, ask)
        first = list(islice(rows, BATCH))
        table = pa.Table.from_pylist([_safe(row) for row in first]) if first else _empty(pa, listing)
        with pq.ParquetWriter(sink, _nullable(pa, table.schema)) as writer:
            writer.write_table(table.cast(writer.schema))
            while batch := list(islice(rows, BATCH)):
                writer.write_table(pa.Table.from_pylist([_safe(row) for row in batch], schema=writer.schema))
    return sink.getvalue()


def columns(listing: Listing) -> list[str]:
    """The names of a listing's columns."""
    return [column.name for column in listing.rows.selected_columns]


def _nullable(pa: Any, schema: Any) -> Any:
    """A column that is empty in the first rows may hold text later."""
    return pa.schema([pa.field(f.name, pa.string() if pa.types.is_null(f.type) else f.type) for f in schema])


def _empty(pa: Any, listing: Listing) -> Any:
    return pa.table({name: pa.array([], pa.string()) for name in columns(listing)})


def _safe(row: Mapping[str, Any]) -> dict[str, Any]:
    flat = {name: _flat(value) for name, value in row.items()}
    return {name: visible(value) if isinstance(value, str) else value for name, value in flat.items()}


def _flat(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value


def _lines(rows: Sequence[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")
