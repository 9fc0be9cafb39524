"""A sweep's failures by cluster: which cases each holds, which entries it blocks, and what fixing it would unlock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from neuronqa.db import clusters, occurrences
from neuronqa.db.clusters import ClusterCount, ClusterRow, Rule
from neuronqa.db.queries import SweepRow
from neuronqa.domain.cluster import State
from neuronqa.domain.outcome import Standing, rules
from neuronqa.domain.policy import Policy
from neuronqa.sweep.standings import Standings, standings
from neuronqa.triage import unlock
from neuronqa.triage.attribution import TELLING, Failure, attribute
from neuronqa.triage.keys import KEY_VERSION, Cause
from neuronqa.triage.unlock import Blocked, Unlock


def lane(row: SweepRow) -> str:
    """What clusters live on: fixed on one device or profile is not fixed on another."""
    return f"{row.device}/{row.profile}"


def failures(db: Connection, row: SweepRow) -> list[Failure]:
    """What failed in a sweep and was asked for, by cause. Nothing else keeps an entry off."""
    policy = Policy.from_json(row.policy)
    asked = {pair for rung in policy.rungs for pair in policy.asks(rung)}
    seen = occurrences.occurrences(db, row.id, telling=TELLING)
    return list(attribute(one for one in seen if (one.variant, one.check) in asked))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """A group of entries: by whose findings it stands, and whether every check it was asked has an answer."""

    group_id: int
    workload: str
    complete: bool
    entries: int
    downloads: int


def stands(row: SweepRow, settled: Standings) -> list[Stand]:
    """Every group that something ran for."""
    policy = Policy.from_json(row.policy)
    asked = [pair for rung in policy.rungs for pair in policy.asks(rung)]
    whole: dict[str, bool] = {}
    by = settled.standing_by
    for workload in set(by.values()):
        said = settled.findings[workload]
        whole[workload] = all(pair in said and said[pair].standing is not Standing.NOT_RUN for pair in asked)
    return [
        Stand(
            group_id=planned.id,
            workload=by[planned.id],
            complete=whole[by[planned.id]],
            entries=planned.entries,
            downloads=planned.downloads,
        )
        for planned in settled.groups
        if planned.id in by
    ]


class Holders:
    """Which cluster holds a failure: a rule for a part of a key goes before the rule for the whole of it."""

    def __init__(self, learnt: Iterable[Rule]) -> None:
        self._whole: dict[str, int] = {}
        self._narrow: dict[str, dict[tuple[str, str], int]] = {}
        for rule in learnt:
            if rule.part:
                self._narrow.setdefault(rule.key, {})[rule.part, rule.value] = rule.cluster_id
            else:
                self._whole[rule.key] = rule.cluster_id

    def of(self, failure: Failure) -> int | None:
        """None where nobody holds its key yet."""
        key = failure.cause.key
        narrow = self._narrow.get(key)
        if narrow:
            site = failure.site
            for (part, value), cluster_id in narrow.items():
                if site.get(part) == value:
                    return cluster_id
        return self._whole.get(key)

    def hold(self, key: str, cluster_id: int) -> None:
        self._whole[key] = cluster_id


@dataclass(slots=True)
class Tally:
    """What one cluster does to a sweep."""

    workloads: set[str] = field(default_factory=set)
    cases: set[int] = field(default_factory=set)
    attempts: int = 0
    example: int = 0
    """Attempt id: the first."""
    entries: int = 0
    downloads: int = 0
    sole_entries: int = 0
    sole_downloads: int = 0

    def add(self, failure: Failure) -> None:
        one = failure.occurrence
        self.workloads.add(one.workload)
        self.cases.add(one.case_id)
        if not failure.symptom:
            self.attempts += one.attempts
        self.example = min(self.example, one.attempt) if self.example else one.attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """A sweep's failures, clustered and weighed."""

    members: Sequence[tuple[int, Failure]]
    tallies: Mapping[int, Tally]
    blocks: Mapping[int, frozenset[int]]
    """Group id -> ids of the clusters between it and green."""
    unlock: Unlock


def analyse(found: Sequence[Failure], held: Holders, groups: Sequence[Stand], last: frozenset[int]) -> Analysis:
    """Weigh what failed. Every failure must have a holder; clusters in `last` go to the end of the order of fixes."""
    members: list[tuple[int, Failure]] = []
    tallies: dict[int, Tally] = {}
    blocking: dict[str, set[int]] = {}
    for failure in found:
        cluster_id = held.of(failure)
        if cluster_id is None:
            raise LookupError(f"nobody holds {failure.cause.key}")
        members.append((cluster_id, failure))
        tallies.setdefault(cluster_id, Tally()).add(failure)
        blocking.setdefault(failure.occurrence.workload, set()).add(cluster_id)
    blocks, blocked = {}, []
    for group in groups:
        by = frozenset(blocking.get(group.workload, ()))
        blocked.append(Blocked(by, group.entries, group.downloads, group.complete))
        blocks[group.group_id] = by
        for cluster_id in by:
            tally = tallies[cluster_id]
            tally.entries += group.entries
            tally.downloads += group.downloads
            if len(by) == 1 and group.complete:
                tally.sole_entries += group.entries
                tally.sole_downloads += group.downloads
    return Analysis(members=members, tallies=tallies, blocks=blocks, unlock=unlock.rank(blocked, last))


def ranked(tallies: Mapping[int, Tally], order: Unlock, known: Mapping[int, ClusterRow]) -> list[ClusterCount]:
    """The clusters of a sweep in the order of fixes; those that block no entry at the end."""
    steps = {step.cluster: (place, step) for place, step in enumerate(order.steps, 1)}
    final = order.steps[-1] if order.steps else None
    found = []
    idle = sorted(cluster_id for cluster_id in tallies if cluster_id not in steps)
    for cluster_id, tally in tallies.items():
        place, step = steps.get(cluster_id, (0, final))
        found.append(
            ClusterCount(
                cluster=known[cluster_id],
                state=known[cluster_id].state,
                workloads=len(tally.workloads),
                cases=len(tally.cases),
                attempts=tally.attempts,
                example=tally.example,
                entries=tally.entries,
                downloads=tally.downloads,
                sole_entries=tally.sole_entries,
                sole_downloads=tally.sole_downloads,
                place=place or len(steps) + 1 + idle.index(cluster_id),
                unlocked_entries=step.entries if step else 0,
                unlocked_downloads=step.downloads if step else 0,
            )
        )
    return sorted(found, key=lambda one: one.place)


def preview(db: Connection, row: SweepRow, settled: Standings | None = None) -> list[ClusterCount]:
    """The clusters of a sweep as they are now, without writing anything: new ones have ids below 0."""
    settled = settled or standings(db, row)
    found = failures(db, row)
    where = lane(row)
    held = Holders(clusters.rules(db, where))
    known = {one.id: one for one in clusters.of_lane(db, where)}
    for failure in found:
        if held.of(failure) is None:
            provisional = _provisional(-len(known) - 1, where, failure.cause, row.id)
            known[provisional.id] = provisional
            held.hold(failure.cause.key, provisional.id)
    last = frozenset(one.id for one in known.values() if one.state.by_person)
    result = analyse(found, held, stands(row, settled), last)
    return ranked(result.tallies, result.unlock, known)


def _provisional(id_: int, where: str, cause: Cause, sweep_id: int) -> ClusterRow:
    rule = rules(cause.outcome.kind)
    return ClusterRow(
        id=id_,
        lane=where,
        key=cause.key,
        key_version=KEY_VERSION,
        check=cause.check,
        outcome=cause.outcome,
        rung=rule.rung or cause.check.rung,
        at_fault=rule.at_fault,
        state=State.NEW,
        version=0,
        assignee="",
        merged_into=None,
        born_sweep_id=sweep_id,
        seen_sweep_id=sweep_id,
        fixed_build_id=None,
    )
