"""The writer of triage: clusters change by compare-and-set, and every change leaves a journal row beside it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from sqlalchemy import Connection, Table, delete, func, insert, select, update

from neuronqa.db import cluster_tables as ct
from neuronqa.db.clusters import Rule
from neuronqa.db.engine import LOCKS
from neuronqa.domain.cluster import Move
from neuronqa.domain.identity import strict
from neuronqa.domain.outcome import Check, Outcome, rules
from neuronqa.errors import NeuronQAError

CHUNK: Final = 1000
REPLACED: Final = (ct.membership, ct.cluster_count, ct.group_block, ct.stands_by)
"""What a sweep is triaged into: written anew whenever it is triaged anew."""


class StaleVersion(NeuronQAError):
    """Somebody else changed the cluster since it was read."""


def take_turns(db: Connection, lane: str) -> None:
    """Wait for whoever else triages this lane: nobody may make a cluster between our look and our own."""
    if db.dialect.name == "postgresql":
        db.execute(select(func.pg_advisory_xact_lock(LOCKS, func.hashtext(lane))))
    else:
        db.execute(delete(ct.triage).where(ct.triage.c.sweep_id < 0))  # SQLite takes its one lock at the first write.


def create(
    db: Connection, lane: str, key: str, key_version: str, check: Check, found: Outcome, sweep_id: int, move: Move
) -> int:
    """Make a cluster in the state `move` names, with the first row of its journal. Returns its id."""
    rule = rules(found.kind)
    values = {
        "lane": lane,
        "key": key,
        "key_version": key_version,
        "check": check.value,
        "kind": found.kind.value,
        "detail": found.detail,
        "rung": (rule.rung or check.rung).value,
        "at_fault": rule.at_fault.value,
        "state": move.after.value,
        "version": 1,
        "assignee": "",
        "born_sweep_id": sweep_id,
        "seen_sweep_id": sweep_id,
    }
    cluster_id = int(db.execute(insert(ct.cluster).values(values).returning(ct.cluster.c.id)).scalar_one())
    _journal(db, cluster_id, 1, key_version, move)
    return cluster_id


def change(db: Connection, cluster_id: int, expected: int, keys: str, move: Move, **values: Any) -> int:
    """Change a cluster that still has the version `expected`, and journal it; returns the new version.

    `keys` is the version of the rules of cause keys, `values` are further columns.

    Raises StaleVersion, with nothing written, where somebody else was first.
    """
    changed = db.execute(
        update(ct.cluster)
        .where(ct.cluster.c.id == cluster_id, ct.cluster.c.version == expected)
        .values(state=move.after.value, version=expected + 1, **values)
    )
    if changed.rowcount != 1:
        raise StaleVersion(
            f"cluster {cluster_id} has changed since it was read",
            hint=f"look at it again (`neuronqa triage show {cluster_id}`), then repeat",
        )
    _journal(db, cluster_id, expected + 1, keys, move)
    return expected + 1


def note_seen(db: Connection, cluster_ids: Sequence[int], sweep_id: int) -> None:
    """Keep the sweep in which clusters were seen last: bookkeeping that is no change of state."""
    for start in range(0, len(cluster_ids), 500):
        chunk = list(cluster_ids[start : start + 500])
        db.execute(update(ct.cluster).where(ct.cluster.c.id.in_(chunk)).values(seen_sweep_id=sweep_id))


def teach(db: Connection, lane: str, learnt: Iterable[Rule]) -> None:
    """Let each key (or its part) belong to the cluster its rule names, whoever held it before."""
    for rule in learnt:
        same = (
            ct.cluster_rule.c.lane == lane,
            ct.cluster_rule.c.key == rule.key,
            ct.cluster_rule.c.part == rule.part,
            ct.cluster_rule.c.value == rule.value,
        )
        moved = db.execute(update(ct.cluster_rule).where(*same).values(cluster_id=rule.cluster_id))
        if moved.rowcount == 0:
            values = {"lane": lane, "key": rule.key, "part": rule.part, "value": rule.value}
            db.execute(insert(ct.cluster_rule).values(values | {"cluster_id": rule.cluster_id}))


def explain(db: Connection, causes: Mapping[str, tuple[Check, Outcome, Any]]) -> None:
    """Keep what made each key: (check, outcome, parts) by key. A key that is known is left alone."""
    known: set[str] = set()
    keys = list(causes)
    for start in range(0, len(keys), 500):
        chunk = keys[start : start + 500]
        known.update(db.execute(select(ct.cause.c.key).where(ct.cause.c.key.in_(chunk))).scalars())
    fresh = [
        {"key": key, "check": check.value, "kind": found.kind.value, "detail": found.detail, "parts": strict(parts)}
        for key, (check, found, parts) in causes.items()
        if key not in known
    ]
    _bulk(db, ct.cause, fresh)


def waive(db: Connection, cluster_id: int, owner: str, reason: str, expires: float) -> None:
    """Keep a waiver; the state of the cluster is changed beside it."""
    revoke(db, cluster_id)
    made = time.time()
    values = {"cluster_id": cluster_id, "owner": owner, "reason": reason, "made": made, "expires": expires}
    db.execute(insert(ct.waiver).values(values))


def revoke(db: Connection, cluster_id: int) -> None:
    """Take back every waiver of a cluster."""
    held = (ct.waiver.c.cluster_id == cluster_id, ct.waiver.c.revoked.is_(None))
    db.execute(update(ct.waiver).where(*held).values(revoked=time.time()))


def clear(db: Connection, sweep_id: int) -> None:
    """Forget what a sweep was triaged into; clusters, rules and journal stay."""
    for table in (*REPLACED, ct.triage):
        db.execute(delete(table).where(table.c.sweep_id == sweep_id))


def keep(db: Connection, table: Table, new: Iterable[Mapping[str, Any]]) -> None:
    """Write rows of one of the tables a sweep is triaged into."""
    _bulk(db, table, new)


def keep_triage(db: Connection, **values: Any) -> None:
    """Write the row that says that a sweep has been triaged."""
    db.execute(insert(ct.triage).values({**values, "made": time.time()}))


def keep_report(db: Connection, sweep_id: int, report: Mapping[str, Any]) -> None:
    """Keep a triaged sweep's report, so that pages need not count anew."""
    db.execute(update(ct.triage).where(ct.triage.c.sweep_id == sweep_id).values(report=strict(report)))


def _journal(db: Connection, cluster_id: int, version: int, key_version: str, move: Move) -> None:
    db.execute(
        insert(ct.cluster_event).values(
            cluster_id=cluster_id,
            version=version,
            at=time.time(),
            actor=move.actor,
            action=move.action.value,
            before=move.before.value if move.before else None,
            after=move.after.value,
            sweep_id=move.sweep_id,
            build_id=move.build_id,
            key_version=key_version,
            reason=move.reason,
            evidence=strict(move.evidence),
        )
    )


def _bulk(db: Connection, table: Table, new: Iterable[Mapping[str, Any]]) -> None:
    iterator = iter(new)
    while chunk := [dict(row) for row in islice(iterator, CHUNK)]:
        db.execute(insert(table), chunk)
