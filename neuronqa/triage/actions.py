"""What a person (or the fix queue) does to clusters: merge, split, move, mute, assign, mark.

Every action names the version of the cluster it saw (or takes the newest), is one transaction, and leaves a journal row
on every cluster it touched. What it teaches is kept as rules, so that later sweeps cluster as they were told.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Engine

from neuronqa.db import cluster_store, clusters, queries
from neuronqa.db.cluster_store import StaleVersion
from neuronqa.db.clusters import ClusterRow, Rule
from neuronqa.domain.cluster import Action, Move, State
from neuronqa.errors import BadInput
from neuronqa.triage.attribution import SITES
from neuronqa.triage.keys import KEY_VERSION
from neuronqa.triage.settle import triage

MARKS: Final = (State.INVALID, State.EXPECTED, State.FIX_PENDING, State.LANDED, State.ONGOING)
"""States that somebody may simply declare; `ongoing` opens a cluster again."""
LONGEST: Final = 366 * 86400.0
"""Seconds a waiver may hold at most: what is put up with must be looked at again."""
KEY: Final = "key"
"""The part a cluster of several keys is split by."""


def merge(engine: Engine, into: str, others: Sequence[str], *, actor: str, reason: str = "") -> int:
    """Let the cluster `into` hold every key of `others`, which become its duplicates. Returns its id.

    Raises BadInput for clusters of other lanes, for the same one, and for one that is a duplicate itself.
    """
    with engine.begin() as db:
        target = _open(db, into)
        cluster_store.take_turns(db, target.lane)
        target = _fresh(db, target)
        sources = [clusters.cluster(db, named) for named in dict.fromkeys(others)]
        for one in sources:
            if one.lane != target.lane:
                raise BadInput(f"clusters {one.id} and {target.id} are of different devices", where=one.lane)
            if one.id == target.id or one.state is State.DUPLICATE:
                raise BadInput(f"cluster {one.id} cannot be merged into {target.id}", hint="it is the same already")
        for one in sources:
            held = [rule for rule in clusters.rules(db, one.lane) if rule.cluster_id == one.id]
            cluster_store.teach(db, one.lane, [_given(rule, target.id) for rule in held])
            evidence = {"into": target.id, "keys": sorted({rule.key for rule in held})}
            move = _move(Action.GIVEN_UP, one, State.DUPLICATE, actor, reason, evidence)
            cluster_store.change(db, one.id, one.version, KEY_VERSION, move, merged_into=target.id)
        taken = {"clusters": [one.id for one in sources]}
        move = _move(Action.MERGED, target, target.state, actor, reason, taken)
        cluster_store.change(db, target.id, target.version, KEY_VERSION, move)
    _settle_again(engine, target.lane)
    return target.id


def split(engine: Engine, named: str, part: str, values: Sequence[str], *, actor: str, reason: str = "") -> int:
    """Give the failures of a cluster that have one of `values` as their `part` to a new cluster; returns its id.

    `part` is one of :data:`SITES` (a family, a dtype, ...), or `key` for one of several keys the cluster holds.
    """
    if part not in (*SITES, KEY):
        raise BadInput(f"clusters are not split by {part!r:.40}", hint=f"one of {', '.join((*SITES, KEY))}")
    if not values:
        raise BadInput("nothing was named to split off", hint=f"give a value of {part}")
    with engine.begin() as db:
        one = clusters.cluster(db, named)
        cluster_store.take_turns(db, one.lane)
        one = _fresh(db, one)
        held = [rule for rule in clusters.rules(db, one.lane) if rule.cluster_id == one.id]
        keys = sorted({rule.key for rule in held})
        if part == KEY and not set(values) < set(keys):
            raise BadInput(
                f"cluster {one.id} does not hold these keys beside others", hint=f"it holds {', '.join(keys)}"
            )
        evidence = {"part": part, "values": list(values), "from": one.id}
        move = Move(action=Action.SPLIT, actor=actor, before=None, after=State.NEW, reason=reason, evidence=evidence)
        key = values[0] if part == KEY else one.key
        fresh = cluster_store.create(db, one.lane, key, KEY_VERSION, one.check, one.outcome, one.seen_sweep_id, move)
        cluster_store.teach(db, one.lane, _split_rules(fresh, part, values, held, keys))
        move = _move(Action.SPLIT, one, one.state, actor, reason, {**evidence, "to": fresh})
        cluster_store.change(db, one.id, one.version, KEY_VERSION, move)
    _settle_again(engine, one.lane)
    return fresh


def move_key(engine: Engine, key: str, source: str, target: str, *, actor: str, reason: str = "") -> int:
    """Give one key from a cluster to another of its lane. Returns the id of the one that holds it now."""
    with engine.begin() as db:
        giver, taker = clusters.cluster(db, source), _open(db, target)
        cluster_store.take_turns(db, giver.lane)
        giver, taker = _fresh(db, giver), _fresh(db, taker)
        if giver.lane != taker.lane or giver.id == taker.id:
            raise BadInput(f"the key cannot be moved from cluster {giver.id} to {taker.id}")
        moved = [rule for rule in clusters.rules(db, giver.lane) if rule.cluster_id == giver.id and rule.key == key]
        if not moved:
            raise BadInput(
                f"cluster {giver.id} does not hold {key!r:.40}", hint="`neuronqa triage show` lists its keys"
            )
        cluster_store.teach(db, giver.lane, [_given(rule, taker.id) for rule in moved])
        evidence = {"key": key, "from": giver.id, "to": taker.id}
        for one in (giver, taker):
            move = _move(Action.MOVED, one, one.state, actor, reason, evidence)
            cluster_store.change(db, one.id, one.version, KEY_VERSION, move)
    _settle_again(engine, giver.lane)
    return taker.id


def mute(
    engine: Engine,
    named: str,
    *,
    owner: str,
    reason: str,
    until: float,
    actor: str,
    expected: int | None = None,
) -> None:
    """Put up with a cluster until a time (Unix): it goes to the end of the order of fixes, and still counts as failing.

    Raises BadInput without an owner, a reason and an end within a year.
    """
    if not owner.strip() or not reason.strip():
        raise BadInput("a waiver needs an owner and a reason", hint="say who answers for it, and why")
    if not time.time() < until <= time.time() + LONGEST:
        raise BadInput("a waiver must end, within a year from now", hint="give a date after today")
    with engine.begin() as db:
        one = _seen(db, named, expected)
        move = _move(Action.MUTED, one, State.MUTED, actor, reason, {"owner": owner, "until": until})
        cluster_store.change(db, one.id, one.version, KEY_VERSION, move)
        cluster_store.waive(db, one.id, owner.strip(), reason.strip(), until)


def unmute(engine: Engine, named: str, *, actor: str, reason: str = "", expected: int | None = None) -> None:
    """Take a waiver back. Raises BadInput where there is none."""
    with engine.begin() as db:
        one = _seen(db, named, expected)
        if one.state is not State.MUTED:
            raise BadInput(f"cluster {one.id} is not muted")
        move = _move(Action.UNMUTED, one, State.ONGOING, actor, reason, {})
        cluster_store.change(db, one.id, one.version, KEY_VERSION, move)
        cluster_store.revoke(db, one.id)


def assign(engine: Engine, named: str, who: str, *, actor: str, expected: int | None = None) -> None:
    """Say who looks after a cluster; nobody where `who` is empty."""
    with engine.begin() as db:
        one = _seen(db, named, expected)
        move = _move(Action.ASSIGNED, one, one.state, actor, "", {"to": who, "from": one.assignee})
        cluster_store.change(db, one.id, one.version, KEY_VERSION, move, assignee=who[:200])


def mark(
    engine: Engine, named: str, state: State, *, actor: str, reason: str = "", expected: int | None = None
) -> None:
    """Declare a cluster to be in one of :data:`MARKS`."""
    if state not in MARKS:
        raise BadInput(f"{state.value} is not for a person to say", hint=f"one of {', '.join(MARKS)}")
    with engine.begin() as db:
        one = _seen(db, named, expected)
        move = _move(Action.MARKED, one, state, actor, reason, {})
        more: dict[str, Any] = {"merged_into": None} if one.state is State.DUPLICATE else {}
        cluster_store.change(db, one.id, one.version, KEY_VERSION, move, **more)
        if one.state is State.MUTED:
            cluster_store.revoke(db, one.id)


def _split_rules(fresh: int, part: str, values: Sequence[str], held: Sequence[Rule], keys: Sequence[str]) -> list[Rule]:
    if part == KEY:
        return [_given(rule, fresh) for rule in held if rule.key in values]
    return [Rule(key=key, part=part, value=value, cluster_id=fresh) for key in keys for value in values]


def _given(rule: Rule, cluster_id: int) -> Rule:
    return Rule(key=rule.key, part=rule.part, value=rule.value, cluster_id=cluster_id)


def _open(db: Connection, named: str) -> ClusterRow:
    one = clusters.cluster(db, named)
    if one.state is State.DUPLICATE:
        raise BadInput(f"cluster {one.id} is a duplicate", hint=f"name {one.merged_into} instead")
    return one


def _fresh(db: Connection, one: ClusterRow) -> ClusterRow:
    return clusters.by_ids(db, [one.id])[one.id]


def _seen(db: Connection, named: str, expected: int | None) -> ClusterRow:
    one = clusters.cluster(db, named)
    if expected is not None and expected != one.version:
        raise StaleVersion(f"cluster {one.id} has changed since it was read", hint="look at it again, then repeat")
    return one


def _move(action: Action, one: ClusterRow, after: State, actor: str, reason: str, evidence: dict[str, Any]) -> Move:
    return Move(
        action=action, actor=actor[:200], before=one.state, after=after, reason=reason[:2000], evidence=evidence
    )


def _settle_again(engine: Engine, lane: str) -> None:
    """What was kept of the newest sweep is made anew by the new rules; older sweeps keep what they said."""
    with engine.connect() as db:
        newest = clusters.newest_triaged(db, lane)
        name = queries.sweep_name(db, newest) if newest is not None else None
    if name is not None:
        triage(engine, name)
