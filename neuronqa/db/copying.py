"""Many rows at once into PostgreSQL, by COPY: inserting them costs the driver three times as much."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.exc import IntegrityError as Refused

from neuronqa.db.engine import is_away, shown
from neuronqa.errors import DatabaseAway, EnvironmentFault


def copy(db: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add `rows`, which all have the same keys, inside the transaction `db` is in.

    Raises EnvironmentFault if the server fails.
    """
    from psycopg import Error, IntegrityError, sql

    if not rows:
        return
    names = list(rows[0])
    prepared = [_processor(db, table, name) for name in names]
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(table.name), sql.SQL(", ").join(map(sql.Identifier, names))
    )
    driver: Any = db.connection.dbapi_connection
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as stream:
            for row in rows:
                stream.write_row([prepare(row[name]) for name, prepare in zip(names, prepared, strict=True)])
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
