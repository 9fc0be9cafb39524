"""Sums over a finished sweep, kept for the pages: written whole, or anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

from sqlalchemy import Engine, Table, insert

from neuronqa.db.rows import Row

CHUNK: Final = 1000


def replace(engine: Engine, sweep_id: int, new: Mapping[Table, Iterable[Row]]) -> None:
    """Write the rows of `new` (without their sweep) in place of what the sweep has in those tables; one transaction."""
    with engine.begin() as db:
        for table, rows in new.items():
            db.execute(table.delete().where(table.c.sweep_id == sweep_id))
            iterator = iter(rows)
            while chunk := [{"sweep_id": sweep_id, **row} for row in islice(iterator, CHUNK)]:
                db.execute(insert(table), chunk)
