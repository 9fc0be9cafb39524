"""Failing outcomes, one row each, and single attempts."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, Select, Text, cast, func, select, text
from sqlalchemy.sql import table

from neuronqa.db import queries
from neuronqa.db import tables as t
from neuronqa.db import tally_tables as tt
from neuronqa.db.browse.listing import Ask, Count, Facets, Listing, Sort, facets_of
from neuronqa.db.columns import escape
from neuronqa.db.queries import BLOCKING, SweepRow
from neuronqa.errors import BadInput

TALLIED: Final = ("check", "outcome", "variant", "family", "kind")


def listing(db: Connection, row: SweepRow) -> Listing:
    """Failing outcomes of the attempts that count, and of probes, in the order they were found."""
    attempt, blocker, case, workload = t.attempt.c, t.blocker.c, t.case.c, t.workload.c
    first, last = span(db, row.id)
    rows = (
        select(
            attempt.id.label("attempt"),
            workload.hash.label("workload"),
            workload.family,
            workload.class_name,
            case.variant,
            attempt.kind.label("attempt_kind"),
            blocker.check,
            blocker.kind.label("outcome"),
            blocker.detail,
        )
        .select_from(t.blocker)
        .join(t.attempt, attempt.id == blocker.attempt_id)
        .join(t.case, case.id == attempt.case_id)
        .join(t.workload, workload.id == case.workload_id)
        .where(blocker.attempt_id.between(first, last), _of(row.id), queries.kept(row.id, BLOCKING))
    )
    return Listing(
        name="cases",
        rows=rows,
        key=_position(),
        sorts={"found": Sort(column=blocker.attempt_id)},
        filters={
            "check": blocker.check,
            "outcome": blocker.kind,
            "detail": blocker.detail,
            "variant": case.variant,
            "family": workload.family,
            "kind": attempt.kind,
        },
        narrowed={"workload": lambda hash_: blocker.attempt_id.in_(_made_at(row.id, hash_))},
        search=lambda words: blocker.attempt_id.in_(matching(db, words)),
        facets=TALLIED,
        tallied=lambda db, ask: _tallied(db, row.id, ask),
    )


def _made_at(sweep_id: int, hash_: str) -> Select[Any]:
    """The attempts of a sweep at one workload."""
    return (
        select(t.attempt.c.id)
        .join(t.case, t.case.c.id == t.attempt.c.case_id)
        .join(t.workload, t.workload.c.id == t.case.c.workload_id)
        .where(_of(sweep_id), t.workload.c.hash == hash_)
    )


def _of(sweep_id: int) -> ColumnElement[bool]:
    """Attempts of a sweep, asked so that SQLite, which has no statistics, does not gather all of them first."""
    return t.attempt.c.sweep_id + 0 == sweep_id


def _tallied(db: Connection, sweep_id: int, ask: Ask) -> tuple[Count, Facets] | None:
    """Exact, where only what was tallied is asked for and the sweep has been concluded."""
    if ask.search or not set(ask.filters) <= set(TALLIED):
        return None
    tally = tt.failure_tally.c
    columns = dict(
        zip(TALLIED, (tally.check, tally.kind, tally.variant, tally.family, tally.attempt_kind), strict=True)
    )
    asked = [columns[name].in_(values) for name, values in ask.filters.items()]
    found = db.execute(select(*columns.values(), tally.failures).where(tally.sweep_id == sweep_id, *asked)).all()
    if not found and not asked:
        return None
    return Count(n=sum(row.failures for row in found)), facets_of(TALLIED, found)


def _position() -> ColumnElement[Any]:
    """Ties within an attempt: the check, then its position."""
    return t.blocker.c.check.concat(":").concat(cast(t.blocker.c.position, Text))


def span(db: Connection, sweep_id: int) -> tuple[int, int]:
    """The first and the last attempt of a sweep: between them, rows are read in their own order."""
    query = select(func.min(t.attempt.c.id), func.max(t.attempt.c.id)).where(t.attempt.c.sweep_id == sweep_id)
    first, last = db.execute(query).one()
    return (first or 0, last or 0)


def matching(db: Connection, words: str) -> Select[Any]:
    """Attempts a failing check of which says all of `words`."""
    if db.dialect.name == "sqlite":
        phrases = " ".join('"{}"'.format(word.replace('"', '""')) for word in words.split())
        found = (
            select(text("rowid"))
            .select_from(table("message_words"))
            .where(text("message_words MATCH :phrases").bindparams(phrases=escape(phrases)))
        )
        return select(tt.message.c.attempt_id).where(tt.message.c.id.in_(found))
    document = func.to_tsvector(text("'simple'"), tt.message.c.text)
    return select(tt.message.c.attempt_id).where(
        document.op("@@")(func.plainto_tsquery(text("'simple'"), escape(words)))
    )


def attempt(db: Connection, id_: int) -> Row[Any]:
    """An attempt with its variant, workload (hash, family, class_name) and sweep (name). Raises BadInput for none."""
    query = (
        select(
            t.attempt,
            t.case.c.variant,
            t.case.c.hash.label("case_hash"),
            t.workload.c.hash.label("workload"),
            t.workload.c.family,
            t.workload.c.class_name,
            t.sweep.c.name.label("sweep"),
        )
        .join(t.case, t.case.c.id == t.attempt.c.case_id)
        .join(t.workload, t.workload.c.id == t.case.c.workload_id)
        .join(t.sweep, t.sweep.c.id == t.attempt.c.sweep_id)
        .where(t.attempt.c.id == id_)
    )
    row = db.execute(query).first()
    if row is None:
        raise BadInput(f"there is no attempt {id_}")
    return row
