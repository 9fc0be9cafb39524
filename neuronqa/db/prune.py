"""Forgetting old sweeps: their rows go, their names stay, because causes remember in which sweep they were born."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, delete, func, null, or_, select, text, update

from neuronqa.db import tables as t
from neuronqa.db.schema import metadata

PRUNED = "pruned"


@dataclass(frozen=True, kw_only=True)
class Pruned:
    """What was removed."""

    sweeps: int
    attempts: int
    blobs: int


def prune(engine: Engine, keep: int) -> Pruned:
    """Remove everything of all but the newest `keep` sweeps; one that runs is kept, and is one of them."""
    with engine.begin() as db:
        doomed = _doomed(db, keep)
        attempts = _empty(db, doomed)
        blobs = _drop_unused_blobs(db)
        emptied = {"state": PRUNED, "summary": null()}
        db.execute(update(t.sweep).where(t.sweep.c.id.in_(doomed)).values(emptied))
    if engine.dialect.name == "sqlite" and doomed:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as db:
            db.execute(text("VACUUM"))
    return Pruned(sweeps=len(doomed), attempts=attempts, blobs=blobs)


def _doomed(db: Connection, keep: int) -> list[int]:
    alive = select(t.sweep.c.id, t.sweep.c.state).where(t.sweep.c.state != PRUNED).order_by(t.sweep.c.id.desc())
    return [row.id for row in db.execute(alive.offset(keep)) if row.state != "running"]


def _empty(db: Connection, doomed: Sequence[int]) -> int:
    """Whatever names one of these sweeps in its key, or one of their attempts."""
    attempts = select(t.attempt.c.id).where(t.attempt.c.sweep_id.in_(doomed))
    count = int(db.execute(select(func.count()).select_from(attempts.subquery())).scalar_one())
    for table in reversed(metadata.sorted_tables):
        if table is t.sweep or table is t.attempt:
            continue
        mine = [c.in_(doomed) for c in table.primary_key if c.references(t.sweep.c.id)]
        mine += [c.in_(attempts) for c in table.c if c.references(t.attempt.c.id)]
        if mine:
            db.execute(delete(table).where(or_(*mine)))
    db.execute(delete(t.attempt).where(t.attempt.c.sweep_id.in_(doomed)))
    return count


def _drop_unused_blobs(db: Connection) -> int:
    used = [
        select(column).where(column.is_not(None))
        for table in metadata.sorted_tables
        for column in table.c
        if column.references(t.blob.c.id)
    ]
    unused = delete(t.blob)
    for query in used:
        unused = unused.where(t.blob.c.id.not_in(query))
    return int(db.execute(unused).rowcount)
