"""Many rows at once into PostgreSQL, by COPY and arrays: plain inserts cost the driver four times as much.

Every statement here has one text whatever the number of rows, so that nobody parses it anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Table, any_, literal
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.exc import IntegrityError as Refused

from neuronqa.db.engine import is_away, shown
from neuronqa.db.tables import blob as blob_table
from neuronqa.errors import DatabaseAway, EnvironmentFault


def copy(db: Connection, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add `rows`, which all have the same keys, inside the transaction `db` is in.

    All in one statement: the server takes rows in while the next are made. Raises EnvironmentFault if it fails.
    """
    from psycopg import sql

    made = iter(rows)
    first = next(made, None)
    if first is None:
        return
    names = list(first)
    prepared = [_processor(db, table, name) for name in names]
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(table.name), sql.SQL(", ").join(map(sql.Identifier, names))
    )
    with _errors(db, table), _driver(db).cursor() as cursor, cursor.copy(statement) as stream:
        for row in chain((first,), made):
            stream.write_row([prepare(row[name]) for name, prepare in zip(names, prepared, strict=True)])


def new_ids(db: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Add `rows` like :func:`copy`, and return the ids they get, in order."""
    reserve = "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)"
    with _errors(db, table):
        ids = [int(id_) for (id_,) in _driver(db).execute(reserve, (table.name, len(rows))).fetchall()]
    copy(db, table, [{"id": id_, **row} for id_, row in zip(ids, rows, strict=True)])
    return ids


def add_blobs(db: Connection, blobs: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Add the blobs that are not there yet; sha256 -> id of those."""
    add = """
        INSERT INTO blob (sha256, size, data)
        SELECT * FROM unnest(%b::text[], %b::int[], %b::bytea[])
        ON CONFLICT (sha256) DO NOTHING RETURNING sha256, id
    """
    columns = [[blob[name] for blob in blobs] for name in ("sha256", "size", "data")]
    with _errors(db, blob_table):
        return {sha256: int(id_) for sha256, id_ in _driver(db).execute(add, columns).fetchall()}


def among(db: Connection, column: Column[Any], names: Sequence[Any]) -> ColumnElement[bool]:
    """Is the column's value one of these?"""
    if db.dialect.name == "postgresql":
        return column == any_(literal(list(names), ARRAY(column.type)))
    return column.in_(names)


def _driver(db: Connection) -> Any:
    return db.connection.dbapi_connection


@contextmanager
def _errors(db: Connection, table: Table) -> Iterator[None]:
    from psycopg import Error, IntegrityError

    try:
        yield
    except IntegrityError as error:
        raise Refused(f"COPY {table.name}", None, error) from error
    except Error as error:
        reason = (str(error).splitlines() or ["no reason given"])[0]
        kind = DatabaseAway if is_away("postgresql", error) else EnvironmentFault
        raise kind(f"the database failed: {reason}", where=shown(db.engine.url)) from error


def _processor(db: Connection, table: Table, name: str) -> Callable[[Any], Any]:
    """What SQLAlchemy does to a value of this column on its way to the driver."""
    return table.c[name].type.dialect_impl(db.dialect).bind_processor(db.dialect) or _unchanged


def _unchanged(value: Any) -> Any:
    return value
