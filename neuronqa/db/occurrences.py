"""What triage reads of a sweep: every failing outcome of every case, streamed, for there may be a million."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row, and_, func, select

from neuronqa.db import cluster_tables as ct
from neuronqa.db import queries
from neuronqa.db import tables as t
from neuronqa.db.queries import BLOCKING
from neuronqa.domain.case import Variant
from neuronqa.domain.outcome import Check, Kind, Outcome

STREAMED: Final = 2000
MESSAGE: Final = 1000
"""Characters of a message that are looked at."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One failing outcome of one case, over its counting attempts and probes."""

    case_id: int
    workload_id: int
    workload: str
    family: str
    variant: Variant
    check: Check
    outcome: Outcome
    attempts: int
    attempt: int
    """The first."""
    message: str = ""
    """What the exception said, where that was asked for."""


def occurrences(
    db: Connection, sweep_id: int, *, telling: frozenset[Kind] = frozenset(), kinds: Sequence[str] = BLOCKING
) -> Iterator[Occurrence]:
    """Every failing outcome of a sweep's attempts, a workload and in it a case at a time, as they were found.

    Outcomes of the kinds in `telling` bring the message of their exception.
    """
    messages = _messages(db, sweep_id, telling, kinds)
    first = func.min(t.attempt.c.id)
    position = func.min(t.blocker.c.position)
    what = (
        t.case.c.id,
        t.case.c.workload_id,
        t.workload.c.hash,
        t.workload.c.family,
        t.case.c.variant,
        t.blocker.c.check,
        t.blocker.c.kind,
        t.blocker.c.detail,
    )
    query = (
        select(*what, func.count(), first)
        .select_from(t.attempt)
        .join(t.blocker, t.blocker.c.attempt_id == t.attempt.c.id)
        .join(t.case, t.case.c.id == t.attempt.c.case_id)
        .join(t.workload, t.workload.c.id == t.case.c.workload_id)
        .where(queries.valid(sweep_id, kinds))
        .group_by(*what)
        .order_by(
            t.case.c.workload_id, t.case.c.id, first, t.blocker.c.check, position, t.blocker.c.kind, t.blocker.c.detail
        )
    )
    for row in db.execute(query, execution_options={"yield_per": STREAMED}):
        case_id, workload_id, hash_, family, variant, check, kind, detail, n, attempt = row
        yield Occurrence(
            case_id,
            workload_id,
            hash_,
            family,
            queries.variant(variant),
            Check(check),
            queries.outcome(kind, detail),
            n,
            attempt,
            messages.get((attempt, check), ""),
        )


def _messages(
    db: Connection, sweep_id: int, telling: frozenset[Kind], kinds: Sequence[str]
) -> dict[tuple[int, str], str]:
    """(attempt, check) -> what the exception said. Equal evidence is read once."""
    if not telling:
        return {}
    query = (
        select(t.result.c.attempt_id, t.result.c.check, t.result.c.blob_id)
        .join(t.attempt, t.attempt.c.id == t.result.c.attempt_id)
        .where(queries.valid(sweep_id, kinds), t.result.c.kind.in_(sorted(kind.value for kind in telling)))
    )
    known: dict[int | None, str] = {None: ""}
    found = {}
    for attempt_id, check, blob_id in db.execute(query).all():
        if blob_id not in known:
            known[blob_id] = str(queries.blob(db, blob_id).get("message", ""))[:MESSAGE]
        found[attempt_id, check] = known[blob_id]
    return found


def fates(db: Connection, sweep_id: int, base_id: int) -> Iterator[Any]:
    """What became in `sweep_id` of every case that failed in `base_id`: cluster_id, case_id, check, and kind, detail of
    the check's result now (None where the case was not run)."""
    now = (
        select(t.attempt.c.case_id, t.result.c.check, t.result.c.kind)
        .join(t.result, t.result.c.attempt_id == t.attempt.c.id)
        .where(queries.valid(sweep_id, queries.COUNTING))
        .subquery()
    )
    old = ct.membership.c
    query = (
        select(old.cluster_id, old.case_id, old.check, now.c.kind)
        .outerjoin(now, and_(now.c.case_id == old.case_id, now.c.check == old.check))
        .where(old.sweep_id == base_id, old.symptom.is_(False))
        .order_by(old.cluster_id, old.case_id)
    )
    yield from db.execute(query, execution_options={"yield_per": STREAMED})


def controls(db: Connection, sweep_id: int) -> list[Row[Any]]:
    """What was judged of each planted fault: name, fault, and check, kind, detail of the guarded check's blockers."""
    query = (
        select(t.control.c.name, t.control.c.fault, t.blocker.c.check, t.blocker.c.kind, t.blocker.c.detail)
        .join(
            t.blocker,
            and_(
                t.blocker.c.attempt_id == t.control.c.attempt_id,
                t.blocker.c.check == t.control.c.guards,
                t.blocker.c.position == 0,
            ),
        )
        .where(t.control.c.sweep_id == sweep_id, t.control.c.fault.is_not(None))
        .order_by(t.control.c.attempt_id)
    )
    return list(db.execute(query))
