"""When the rules of keys change: clusters keep their ids, found again by the cases they hold."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection

from neuronqa.db import cluster_store, clusters
from neuronqa.db.clusters import Rule
from neuronqa.db.queries import SweepRow
from neuronqa.domain.cluster import Action, Move
from neuronqa.triage.attribution import Failure
from neuronqa.triage.keys import KEY_VERSION

ACTOR: Final = "neuronqa"


def learn(db: Connection, row: SweepRow, where: str, found: Sequence[Failure]) -> Mapping[str, Any] | None:
    """Where this sweep was triaged by older rules, teach its clusters their new keys; returns the report it had.

    A new key goes to the cluster that held most of the cases it has now, of equals to the oldest; so a cluster whose
    cases have come to several keys holds all of them, and one that shares a key with a larger one loses that key.
    """
    kept = clusters.triaged(db, row.id)
    if kept is None or kept.key_version == KEY_VERSION:
        return kept.report if kept is not None else None
    held = clusters.held_cases(db, row.id)
    votes: dict[str, Counter[int]] = defaultdict(Counter)
    for failure in found:
        one = failure.occurrence
        for cluster_id in held.get((one.case_id, one.check.value, str(one.outcome)), ()):
            votes[failure.cause.key][cluster_id] += 1
    known = {rule.key for rule in clusters.rules(db, where)}
    learnt = [
        Rule(key=key, part="", value="", cluster_id=_most(counted))
        for key, counted in sorted(votes.items())
        if key not in known
    ]
    cluster_store.teach(db, where, learnt)
    _journal(db, row, learnt)
    return None


def _most(counted: Counter[int]) -> int:
    """The cluster with most cases; of equals the oldest."""
    return min(counted, key=lambda cluster_id: (-counted[cluster_id], cluster_id))


def _journal(db: Connection, row: SweepRow, learnt: Sequence[Rule]) -> None:
    keys: dict[int, list[str]] = defaultdict(list)
    for rule in learnt:
        keys[rule.cluster_id].append(rule.key)
    for cluster_id, one in clusters.by_ids(db, list(keys)).items():
        move = Move(
            action=Action.REKEYED,
            actor=ACTOR,
            before=one.state,
            after=one.state,
            reason=f"keys of {one.key_version} became {KEY_VERSION}",
            sweep_id=row.id,
            evidence={"keys": keys[cluster_id], "before": one.key},
        )
        first = keys[cluster_id][0]
        cluster_store.change(db, cluster_id, one.version, KEY_VERSION, move, key=first, key_version=KEY_VERSION)
