"""Triaging a sweep: failures into clusters, clusters through their lives, and all of it kept for whoever reads.

Everything is one transaction; a sweep may be triaged again at any time (after a resume, or when the rules of keys have
changed), and the clusters keep their ids. Only the newest sweep of a lane moves clusters from state to state.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import Connection, Engine

from neuronqa.db import cluster_store, clusters, occurrences, queries
from neuronqa.db import cluster_tables as ct
from neuronqa.db.clusters import ClusterCount, ClusterRow, Rule
from neuronqa.db.queries import SweepRow
from neuronqa.domain.cluster import Action, Move, State
from neuronqa.domain.outcome import Check, Kind, Outcome, Rung, Standing
from neuronqa.sweep.standings import standings
from neuronqa.triage import rekey
from neuronqa.triage.analysis import Analysis, Holders, Stand, analyse, failures, lane, ranked, stands
from neuronqa.triage.attribution import Failure
from neuronqa.triage.grading import Grade, grade
from neuronqa.triage.keys import KEY_VERSION, Cause
from neuronqa.triage.lifecycle import Sighting, born, step, step_again

ACTOR: Final = "neuronqa"


def triage(engine: Engine, name: str | None = None) -> int:
    """Triage a settled sweep (the newest where none is named); returns how many clusters it has.

    A sweep whose plan could not be settled yet is triaged by what it has.
    """
    with engine.connect() as db:
        row = queries.sweep(db, name)
        found = failures(db, row)
        groups = stands(row, standings(db, row))
        graded = grade_controls(db, row.id)
    where = lane(row)
    with engine.begin() as db:
        cluster_store.take_turns(db, where)
        previous = rekey.learn(db, row, where, found)
        cluster_store.clear(db, row.id)
        newest = not clusters.triaged_after(db, row.id, where)
        held = _holders(db, row, where, found)
        known = {one.id: one for one in clusters.of_lane(db, where)}
        waived = {waiver.cluster_id for waiver in clusters.waivers(db, time.time())}
        last = frozenset(id_ for id_, one in known.items() if one.state.by_person)
        result = analyse(found, held, groups, last)
        _keep_members(db, row, result)
        if newest:
            known = _advance(db, row, result, known, waived)
        found_now = ranked(result.tallies, result.unlock, known)
        _keep_counts(db, row, found_now, result, groups)
        cluster_store.keep_triage(
            db,
            sweep_id=row.id,
            lane=where,
            key_version=KEY_VERSION,
            clusters=len(found_now),
            grade=graded.to_json(),
            unlock=result.unlock.to_json(),
            report=previous,
        )
    return len(found_now)


def grade_controls(db: Connection, sweep_id: int) -> Grade:
    """Are planted faults told apart? The fault is the label, the cause key of what the guarded check said the cluster.

    A control that was not noticed is in no cluster of causes, and is not graded here: it withholds its rate.
    """
    pairs = []
    for row in occurrences.controls(db, sweep_id):
        cause = Cause(Check(row.check), Outcome(Kind(row.kind), row.detail))
        pairs.append((row.fault, cause.key))
    return grade(pairs)


def _holders(db: Connection, row: SweepRow, where: str, found: Sequence[Failure]) -> Holders:
    """Who holds each key, with a new cluster for every key that nobody does."""
    held = Holders(clusters.rules(db, where))
    fresh: dict[str, list[Failure]] = defaultdict(list)
    for failure in found:
        if held.of(failure) is None:
            fresh[failure.cause.key].append(failure)
    learnt = []
    for key, some in fresh.items():
        cause = some[0].cause
        own = [failure for failure in some if not failure.symptom]
        cases = len({failure.occurrence.case_id for failure in own})
        state = born(Sighting(cases=cases, attempts=sum(failure.occurrence.attempts for failure in own)))
        move = Move(action=Action.BORN, actor=ACTOR, before=None, after=state, sweep_id=row.id)
        move = replace(move, reason=f"first seen in sweep {row.name}")
        id_ = cluster_store.create(db, where, key, KEY_VERSION, cause.check, cause.outcome, row.id, move)
        held.hold(key, id_)
        learnt.append(Rule(key=key, part="", value="", cluster_id=id_))
    cluster_store.teach(db, where, learnt)
    causes = {failure.cause.key: failure.cause for failure in found}
    explained = {
        key: (cause.check, cause.outcome, [part.to_json() for part in cause.parts]) for key, cause in causes.items()
    }
    cluster_store.explain(db, explained)
    return held


def _keep_members(db: Connection, row: SweepRow, result: Analysis) -> None:
    """One row a cluster, case and check, though a check may fail by several outcomes that are one cause."""
    seen: dict[tuple[int, int, Check], dict[str, Any]] = {}
    for cluster_id, failure in result.members:
        one = failure.occurrence
        kept = seen.get((cluster_id, one.case_id, one.check))
        if kept is not None:
            kept["attempts"] = max(kept["attempts"], one.attempts)
            kept["symptom"] = kept["symptom"] and failure.symptom
            continue
        seen[cluster_id, one.case_id, one.check] = {
            "sweep_id": row.id,
            "cluster_id": cluster_id,
            "case_id": one.case_id,
            "check": one.check.value,
            "key": failure.cause.key,
            "kind": one.outcome.kind.value,
            "detail": one.outcome.detail,
            "symptom": failure.symptom,
            "attempt_id": one.attempt,
            "attempts": one.attempts,
        }
    cluster_store.keep(db, ct.membership, seen.values())


def _keep_counts(
    db: Connection, row: SweepRow, found: Iterable[ClusterCount], result: Analysis, groups: Sequence[Stand]
) -> None:
    cluster_store.keep(
        db,
        ct.cluster_count,
        (
            {
                "sweep_id": row.id,
                "cluster_id": one.cluster.id,
                "state": one.state.value,
                "workloads": one.workloads,
                "cases": one.cases,
                "attempts": one.attempts,
                "attempt_id": one.example,
                "entries": one.entries,
                "downloads": one.downloads,
                "sole_entries": one.sole_entries,
                "sole_downloads": one.sole_downloads,
                "place": one.place,
                "unlocked_entries": one.unlocked_entries,
                "unlocked_downloads": one.unlocked_downloads,
            }
            for one in found
        ),
    )
    blocked = (
        {"sweep_id": row.id, "group_id": group_id, "cluster_id": cluster_id}
        for group_id, by in result.blocks.items()
        for cluster_id in sorted(by)
    )
    cluster_store.keep(db, ct.group_block, blocked)
    ids = queries.workload_ids(db, sorted({group.workload for group in groups}))
    standing = (
        {
            "sweep_id": row.id,
            "group_id": group.group_id,
            "workload_id": ids[group.workload],
            "complete": group.complete,
        }
        for group in groups
    )
    cluster_store.keep(db, ct.stands_by, standing)


@dataclass(slots=True)
class _Fate:
    passed: int = 0
    elsewhere: int = 0
    hidden: int = 0
    not_run: int = 0


def _advance(
    db: Connection, row: SweepRow, result: Analysis, known: Mapping[int, ClusterRow], waived: set[int]
) -> dict[int, ClusterRow]:
    """Move every cluster of the lane to where this sweep puts it, and journal it."""
    floor = min((Rung(rung).height for rung in (row.summary or {}).get("withheld", {})), default=len(Rung))
    build_of = queries.builds(db, sorted({one.seen_sweep_id for one in known.values()} | {row.id}))
    earlier = clusters.triaged_before(db, row.id, lane(row))
    fates = _fates(db, row.id, known, result)
    after = {}
    for id_, one in known.items():
        tally, fate = result.tallies.get(id_), fates.get(id_, _Fate())
        again = one.seen_sweep_id == row.id
        seen = Sighting(
            cases=len(tally.cases) if tally else 0,
            attempts=tally.attempts if tally else 0,
            entries=tally.entries if tally else 0,
            entries_before=None if again or not tally else _entries_before(db, one, row),
            passed=fate.passed,
            elsewhere=fate.elsewhere,
            hidden=fate.hidden,
            not_run=fate.not_run,
            another_build=build_of[one.seen_sweep_id] != build_of[row.id],
            fixing_build=one.fixed_build_id == build_of[row.id],
            trusted=one.rung.height < floor,
            unseen=sum(sweep_id > one.seen_sweep_id for sweep_id in earlier),
            waived=id_ in waived,
        )
        state, why = step_again(one.state, seen) if again else step(one.state, seen)
        after[id_] = _moved(db, row, one, state, why, seen, build_of[row.id])
    cluster_store.note_seen(db, [id_ for id_ in known if id_ in result.tallies], row.id)
    return after


def _moved(
    db: Connection, row: SweepRow, one: ClusterRow, state: State, why: str, seen: Sighting, build_id: int
) -> ClusterRow:
    if state is one.state:
        return one
    move = Move(
        action=Action.OBSERVED,
        actor=ACTOR,
        before=one.state,
        after=state,
        reason=why,
        sweep_id=row.id,
        build_id=build_id,
        evidence=seen.to_json(),
    )
    more = {"fixed_build_id": build_id} if state is State.FIXED else {}
    version = cluster_store.change(db, one.id, one.version, KEY_VERSION, move, **more)
    return replace(one, state=state, version=version)


def _entries_before(db: Connection, one: ClusterRow, row: SweepRow) -> int | None:
    return clusters.entries_in(db, one.id, one.seen_sweep_id, row.plan_id)


def _fates(db: Connection, sweep_id: int, known: Mapping[int, ClusterRow], result: Analysis) -> dict[int, _Fate]:
    """What became of the cases of every cluster that is not seen now, since the sweep it was last seen in."""
    bases = Counter(one.seen_sweep_id for id_, one in known.items() if id_ not in result.tallies)
    found: dict[int, _Fate] = defaultdict(_Fate)
    for base in bases:
        if base == sweep_id:
            continue
        for row in occurrences.fates(db, sweep_id, base):
            if row.cluster_id in result.tallies or known[row.cluster_id].seen_sweep_id != base:
                continue
            fate = found[row.cluster_id]
            if row.kind is None:
                fate.not_run += 1
                continue
            outcome = Kind(row.kind)
            match outcome.rules.standing:
                case Standing.PASS:
                    fate.passed += 1
                case Standing.FAIL:
                    fate.elsewhere += 1
                case Standing.NOT_RUN:
                    fate.hidden += 1
    return found
