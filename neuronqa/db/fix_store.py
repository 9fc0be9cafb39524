"""The writer of the fix queue. Every call is one transaction of the caller's; every change leaves a journal row.

An item changes by compare-and-set on its version, so of two that want the same one wins and the other is told. Claims
take the next free item in one statement: SQLite has one writer, PostgreSQL skips what another transaction holds.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from neuronqa.db import fix_tables as ft
from neuronqa.db.fixes import ItemRow, item, item_row
from neuronqa.domain.fix import FOLLOWS, Ending, ItemState, Judgement, after, wait_s
from neuronqa.domain.identity import strict
from neuronqa.errors import BadInput, NeuronQAError

TOKEN_BYTES: Final = 24
PERSON: Final = "person"
"""The stage at which a person decides."""


class LateLease(NeuronQAError):
    """The lease is over: it expired, was given back, or its item was taken away."""


class Overtaken(NeuronQAError):
    """Somebody else changed the item since it was read."""


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A cluster that is to be offered."""

    cluster_id: int
    sweep_id: int
    lane: str
    operator: str
    title: str
    place: int
    entries: int
    downloads: int


@dataclass(frozen=True, kw_only=True)
class Grant:
    """What an agent gets: the item and the token that everything else asks for. The token is shown here alone."""

    item: ItemRow
    token: str
    expires: float


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What is written of a judged submission."""

    judgement: Judgement
    stage: str
    reason: str
    note: str
    measured: Mapping[str, Any]


def offer(db: Connection, offered: Offer, now: float, actor: str) -> int | None:
    """Queue a cluster; None where a live item has it already."""
    values = {
        "cluster_id": offered.cluster_id,
        "live_cluster_id": offered.cluster_id,
        "sweep_id": offered.sweep_id,
        "lane": offered.lane,
        "operator": offered.operator,
        "title": offered.title,
        "state": ItemState.QUEUED.value,
        "version": 1,
        "place": offered.place,
        "entries": offered.entries,
        "downloads": offered.downloads,
        "rejections": 0,
        "not_before": now,
        "made": now,
    }
    try:
        with db.begin_nested():
            item_id = int(db.execute(insert(ft.fix_item).values(values).returning(ft.fix_item.c.id)).scalar_one())
    except IntegrityError:
        return None
    _journal(db, item_id, 1, now, actor, None, ItemState.QUEUED, "offered", {"sweep": offered.sweep_id})
    return item_id


def claim(db: Connection, agent: str, now: float, seconds: float, item_id: int | None = None) -> Grant | None:
    """Lease the next free item, or this one; None where there is none."""
    expire(db, now)
    free = select(ft.fix_item.c.id).where(
        ft.fix_item.c.state == ItemState.QUEUED.value, ft.fix_item.c.not_before <= now
    )
    if item_id is not None:
        free = free.where(ft.fix_item.c.id == item_id)
    next_one = free.order_by(ft.fix_item.c.place, ft.fix_item.c.id).limit(1).with_for_update(skip_locked=True)
    taken = db.execute(
        update(ft.fix_item)
        .where(ft.fix_item.c.id == next_one.scalar_subquery(), ft.fix_item.c.state == ItemState.QUEUED.value)
        .values(state=ItemState.LEASED.value, version=ft.fix_item.c.version + 1)
        .returning(*ft.fix_item.c)
    ).one_or_none()
    if taken is None:
        return None
    row = item_row(taken)
    token = secrets.token_urlsafe(TOKEN_BYTES)
    lease = {
        "item_id": row.id,
        "live_item_id": row.id,
        "token_sha256": _digest(token),
        "agent": agent,
        "granted": now,
        "expires": now + seconds,
    }
    db.execute(insert(ft.fix_lease).values(lease))
    _journal(db, row.id, row.version, now, agent, ItemState.QUEUED, ItemState.LEASED, "claimed", {})
    return Grant(item=row, token=token, expires=now + seconds)


def heartbeat(db: Connection, token: str, now: float, seconds: float) -> float:
    """Extend a lease that has not ended; returns when it ends now. Raises LateLease."""
    lease = leased(db, token, now)
    expires = now + seconds
    db.execute(update(ft.fix_lease).where(ft.fix_lease.c.id == lease.id).values(expires=expires))
    return expires


def leased(db: Connection, token: str, now: float) -> Any:
    """The lease a token holds. Raises LateLease where it holds none any more."""
    row = db.execute(select(ft.fix_lease).where(ft.fix_lease.c.token_sha256 == _digest(token))).one_or_none()
    if row is None:
        raise LateLease("no lease has this token", hint="claim an item first")
    if row.ended is not None or row.expires <= now:
        how = row.ending or Ending.EXPIRED.value
        raise LateLease(f"the lease of item {row.item_id} is over: {how}", hint="claim again; nothing was written")
    return row


def submit(db: Connection, token: str, kind: str, sha256: str, folder: str, now: float) -> int:
    """Hand in what lies in `folder`, which ends the lease. Returns the submission's id. Raises LateLease."""
    lease = leased(db, token, now)
    made = {
        "item_id": lease.item_id,
        "lease_id": lease.id,
        "kind": kind,
        "sha256": sha256,
        "folder": folder,
        "made": now,
    }
    number = int(db.execute(insert(ft.fix_submission).values(made).returning(ft.fix_submission.c.id)).scalar_one())
    _end(db, lease, Ending.SUBMITTED, now)
    evidence = {"submission": number, "sha256": sha256}
    move(db, item(db, lease.item_id), ItemState.SUBMITTED, now, lease.agent, "handed in", evidence)
    return number


def give_back(db: Connection, token: str, ending: Ending, why: str, now: float, to_person: bool = False) -> None:
    """End a lease without a submission. Raises LateLease."""
    lease = leased(db, token, now)
    _end(db, lease, ending, now)
    target = ItemState.NEEDS_HUMAN if to_person else ItemState.QUEUED
    move(db, item(db, lease.item_id), target, now, lease.agent, why or ending.value, {})


def expire(db: Connection, now: float) -> list[int]:
    """Give back what leases past their time hold. Returns the items."""
    over = db.execute(
        update(ft.fix_lease)
        .where(ft.fix_lease.c.ended.is_(None), ft.fix_lease.c.expires <= now)
        .values(ended=now, ending=Ending.EXPIRED.value, live_item_id=None)
        .returning(ft.fix_lease.c.item_id, ft.fix_lease.c.agent)
    ).all()
    for row in over:
        move(db, item(db, row.item_id), ItemState.QUEUED, now, row.agent, "the lease expired", {})
    return [row.item_id for row in over]


def take(db: Connection, now: float, actor: str, item_id: int | None = None) -> Any:
    """The next submission to verify (its row), with a seed drawn for its hidden cases; None where there is none."""
    free = select(ft.fix_item.c.id).where(ft.fix_item.c.state == ItemState.SUBMITTED.value)
    if item_id is not None:
        free = free.where(ft.fix_item.c.id == item_id)
    next_one = free.order_by(ft.fix_item.c.place, ft.fix_item.c.id).limit(1).with_for_update(skip_locked=True)
    taken = db.execute(next_one).scalar()
    if taken is None:
        return None
    move(db, item(db, taken), ItemState.VERIFYING, now, actor, "verification begins", {})
    latest = select(ft.fix_submission.c.id).where(ft.fix_submission.c.item_id == taken)
    latest = latest.order_by(ft.fix_submission.c.id.desc()).limit(1)
    return db.execute(
        update(ft.fix_submission)
        .where(ft.fix_submission.c.id == latest.scalar_subquery())
        .values(seed=secrets.token_hex(16))
        .returning(*ft.fix_submission.c)
    ).one()


def judge(db: Connection, submission_id: int, verdict: Verdict, now: float, actor: str) -> ItemState:
    """Write a verdict and move the item on; returns its state. Raises Overtaken where it was judged already."""
    written = {
        "judged": now,
        "judgement": verdict.judgement.value,
        "stage": verdict.stage,
        "reason": verdict.reason,
        "note": verdict.note,
        "measured": strict(dict(verdict.measured)),
    }
    changed = db.execute(
        update(ft.fix_submission)
        .where(ft.fix_submission.c.id == submission_id, ft.fix_submission.c.judged.is_(None))
        .values(written)
        .returning(ft.fix_submission.c.item_id)
    ).scalar()
    if changed is None:
        raise Overtaken(f"submission {submission_id} has been judged already", hint="look at its item again")
    row = item(db, changed)
    counts = verdict.judgement is Judgement.REJECTED
    rejections = row.rejections + counts
    target = after(verdict.judgement, rejections)
    rest = now + (wait_s(rejections) if target is ItemState.QUEUED else 0.0)
    why = (
        f"{verdict.judgement.value} at {verdict.stage}: {verdict.reason}" if verdict.stage else verdict.judgement.value
    )
    move(db, row, target, now, actor, why, {"submission": submission_id}, rejections=rejections, not_before=rest)
    return target


def accept_last(db: Connection, item_id: int, now: float) -> int:
    """Let a person's word make the item's last submission an accepted one; returns its id. Raises BadInput for none."""
    last = select(ft.fix_submission.c.id).where(ft.fix_submission.c.item_id == item_id)
    last = last.order_by(ft.fix_submission.c.id.desc()).limit(1)
    changed = db.execute(
        update(ft.fix_submission)
        .where(ft.fix_submission.c.id == last.scalar_subquery())
        .values(judged=now, judgement=Judgement.ACCEPTED.value, stage=PERSON, reason="")
        .returning(ft.fix_submission.c.id)
    ).scalar()
    if changed is None:
        raise BadInput(f"nothing was handed in for item {item_id}", hint="offer it anew instead")
    return int(changed)


def resume(db: Connection, now: float, actor: str) -> list[int]:
    """Items whose verification was cut off go back to those that wait for it. For a verifier that starts alone."""
    cut = list(db.execute(select(ft.fix_item.c.id).where(ft.fix_item.c.state == ItemState.VERIFYING.value)).scalars())
    for one in cut:
        move(db, item(db, one), ItemState.SUBMITTED, now, actor, "verification was cut off", {})
    return cut


def move(
    db: Connection, row: ItemRow, target: ItemState, now: float, actor: str, why: str, evidence: Any, **values: Any
) -> None:
    """Move an item on, if it is still as `row` says. Raises BadInput for what may not follow, Overtaken otherwise."""
    if target not in FOLLOWS[row.state]:
        raise BadInput(f"item {row.id} is {row.state.value}: it cannot become {target.value}")
    if not target.live:
        values["live_cluster_id"] = None
    changed = db.execute(
        update(ft.fix_item)
        .where(ft.fix_item.c.id == row.id, ft.fix_item.c.version == row.version)
        .values(state=target.value, version=row.version + 1, **values)
    )
    if changed.rowcount != 1:
        raise Overtaken(f"item {row.id} has changed since it was read", hint="look at it again, then repeat")
    _journal(db, row.id, row.version + 1, now, actor, row.state, target, why, evidence)


def cancel(db: Connection, item_id: int, why: str, now: float, actor: str) -> None:
    """Take an item off the queue, and away from whoever holds it."""
    held = select(ft.fix_lease).where(ft.fix_lease.c.live_item_id == item_id)
    for lease in db.execute(held).all():
        _end(db, lease, Ending.CANCELLED, now)
    move(db, item(db, item_id), ItemState.CANCELLED, now, actor, why, {})


def _end(db: Connection, lease: Any, ending: Ending, now: float) -> None:
    changed = db.execute(
        update(ft.fix_lease)
        .where(ft.fix_lease.c.id == lease.id, ft.fix_lease.c.ended.is_(None))
        .values(ended=now, ending=ending.value, live_item_id=None)
    )
    if changed.rowcount != 1:
        raise LateLease(f"the lease of item {lease.item_id} is over", hint="claim again; nothing was written")


def _journal(
    db: Connection,
    item_id: int,
    version: int,
    now: float,
    actor: str,
    before: ItemState | None,
    after_: ItemState,
    why: str,
    evidence: Any,
) -> None:
    row = {
        "item_id": item_id,
        "version": version,
        "at": now,
        "actor": actor,
        "before": before.value if before else None,
        "after": after_.value,
        "why": why,
        "evidence": strict(evidence),
    }
    db.execute(insert(ft.fix_event).values(row))


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
