"""What readers ask about clusters. Every function is read-only, takes an open connection, and reads what was kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, exists, select

from neuronqa.db import cluster_tables as ct
from neuronqa.db import queries
from neuronqa.db import tables as t
from neuronqa.domain.case import AttemptKind, Variant
from neuronqa.domain.cluster import Action, State
from neuronqa.domain.outcome import AtFault, Check, Kind, Outcome, Rung
from neuronqa.errors import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRow:
    """A cluster as it stands."""

    id: int
    lane: str
    key: str
    key_version: str
    check: Check
    outcome: Outcome
    rung: Rung
    at_fault: AtFault
    state: State
    version: int
    """Of its journal; whoever changes it names the version they saw."""
    assignee: str
    merged_into: int | None
    born_sweep_id: int
    seen_sweep_id: int
    """The last."""
    fixed_build_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCount:
    """What a cluster does to one sweep."""

    cluster: ClusterRow
    state: State
    """In that sweep; `cluster.state` is today's."""
    workloads: int
    cases: int
    attempts: int
    example: int
    """Attempt id."""
    entries: int
    downloads: int
    sole_entries: int
    sole_downloads: int
    place: int
    """Its turn in the order of fixes, from 1."""
    unlocked_entries: int
    """Green once it and all before it are fixed."""
    unlocked_downloads: int


def counted(sweep_id: int) -> Select[Any]:
    """The rows :func:`cluster_count` reads: every cluster of a sweep. To be filtered, ordered and cut by the caller."""
    return (
        select(ct.cluster, *(column.label(f"count_{column.name}") for column in ct.cluster_count.c))
        .join(ct.cluster_count, ct.cluster_count.c.cluster_id == ct.cluster.c.id)
        .where(ct.cluster_count.c.sweep_id == sweep_id)
    )


def counts(db: Connection, sweep_id: int, limit: int | None = None) -> list[ClusterCount]:
    """The clusters of a sweep in the order of fixes."""
    query = counted(sweep_id).order_by(ct.cluster_count.c.place).limit(limit)
    return [cluster_count(row) for row in db.execute(query)]


def history(db: Connection, cluster_id: int, limit: int = 50) -> list[Row[Any]]:
    """What a cluster did to each sweep, newest first: sweep, started, build, and the columns of `cluster_count`."""
    query = (
        select(t.sweep.c.name, t.sweep.c.started, t.build.c.hash.label("build"), ct.cluster_count)
        .join(t.sweep, t.sweep.c.id == ct.cluster_count.c.sweep_id)
        .join(t.build, t.build.c.id == t.sweep.c.build_id)
        .where(ct.cluster_count.c.cluster_id == cluster_id)
        .order_by(ct.cluster_count.c.sweep_id.desc())
        .limit(limit)
    )
    return list(db.execute(query))


def cluster(db: Connection, named: str) -> ClusterRow:
    """The cluster of this id, or the one whose rules hold this cause key. Raises BadInput for none and for several."""
    if named.isascii() and named.isdecimal() and len(named) < 19:
        query = select(ct.cluster).where(ct.cluster.c.id == int(named))
    else:
        holders = select(ct.cluster_rule.c.cluster_id).where(ct.cluster_rule.c.key == named)
        query = select(ct.cluster).where(ct.cluster.c.id.in_(holders))
    rows = db.execute(query.order_by(ct.cluster.c.id).limit(5)).all()
    if not rows:
        raise BadInput(f"there is no cluster {named!r:.60}", hint="`neuronqa triage list` shows them")
    if len(rows) > 1:
        ids = ", ".join(str(row.id) for row in rows)
        raise BadInput(f"several clusters hold the key {named:.40}", hint=f"give one of the ids {ids}")
    return cluster_row(rows[0])


def by_ids(db: Connection, ids: Sequence[int]) -> dict[int, ClusterRow]:
    """The clusters of these ids."""
    found: dict[int, ClusterRow] = {}
    for start in range(0, len(ids), 500):
        query = select(ct.cluster).where(ct.cluster.c.id.in_(ids[start : start + 500]))
        found.update({row.id: cluster_row(row) for row in db.execute(query)})
    return found


def of_lane(db: Connection, lane: str) -> list[ClusterRow]:
    """Every cluster of a lane, oldest first."""
    query = select(ct.cluster).where(ct.cluster.c.lane == lane).order_by(ct.cluster.c.id)
    return [cluster_row(row) for row in db.execute(query)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A key, maybe narrowed to one value of one part, and the cluster that holds it."""

    key: str
    part: str
    value: str
    cluster_id: int


def rules(db: Connection, lane: str) -> list[Rule]:
    """Every rule of a lane."""
    query = select(ct.cluster_rule).where(ct.cluster_rule.c.lane == lane).order_by(ct.cluster_rule.c.id)
    return [Rule(key=r.key, part=r.part, value=r.value, cluster_id=r.cluster_id) for r in db.execute(query)]


def explanations(db: Connection, cluster_id: int) -> list[Row[Any]]:
    """What made each key a cluster holds: rule (part, value) and cause (key, check, kind, detail, parts)."""
    query = (
        select(ct.cluster_rule.c.part, ct.cluster_rule.c.value, ct.cause)
        .join(ct.cause, ct.cause.c.key == ct.cluster_rule.c.key)
        .where(ct.cluster_rule.c.cluster_id == cluster_id)
        .order_by(ct.cluster_rule.c.id)
    )
    return list(db.execute(query))


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One row of the journal."""

    version: int
    at: float
    actor: str
    action: Action
    before: State | None
    after: State
    sweep: str
    build: str
    key_version: str
    reason: str
    evidence: Mapping[str, Any]


def journal(db: Connection, cluster_id: int) -> list[Event]:
    """Everything that became of a cluster, newest first."""
    event = ct.cluster_event.c
    query = (
        select(ct.cluster_event, t.sweep.c.name.label("sweep"), t.build.c.hash.label("build"))
        .outerjoin(t.sweep, t.sweep.c.id == event.sweep_id)
        .outerjoin(t.build, t.build.c.id == event.build_id)
        .where(event.cluster_id == cluster_id)
        .order_by(event.version.desc())
    )
    return [
        Event(
            version=row.version,
            at=row.at,
            actor=row.actor,
            action=Action(row.action),
            before=State(row.before) if row.before else None,
            after=State(row.after),
            sweep=row.sweep or "",
            build=row.build or "",
            key_version=row.key_version,
            reason=row.reason,
            evidence=row.evidence,
        )
        for row in db.execute(query)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """Who answers for a failure that is put up with, and until when (Unix time)."""

    id: int
    cluster_id: int
    owner: str
    reason: str
    made: float
    expires: float
    revoked: float | None


def waivers(db: Connection, now: float, cluster_id: int | None = None) -> list[Waiver]:
    """The waivers that hold at `now`, soonest to expire first; with `cluster_id`, every one of it that ever was."""
    query = select(ct.waiver).order_by(ct.waiver.c.expires, ct.waiver.c.id)
    if cluster_id is None:
        query = query.where(ct.waiver.c.expires > now, ct.waiver.c.revoked.is_(None))
    else:
        query = query.where(ct.waiver.c.cluster_id == cluster_id)
    return [Waiver(**row._mapping) for row in db.execute(query)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """A case that fails by a cluster: an attempt to look at, and what it failed by."""

    cluster_id: int
    case_id: int
    case: str
    """Its hash."""
    attempt: int
    attempt_kind: AttemptKind
    workload: str
    family: str
    class_name: str
    variant: Variant
    check: Check
    outcome: Outcome
    key: str
    symptom: bool
    measure: float | None
    words: str


def failing(
    db: Connection, sweep_id: int, cluster_id: int, *, limit: int = 200, after: int = 0, words: bool = True
) -> list[Failing]:
    """The cases of a cluster in a sweep by case id, from behind `after` on; symptoms of a case after its cause."""
    query = (
        _failing(sweep_id)
        .where(ct.membership.c.cluster_id == cluster_id, ct.membership.c.case_id > after)
        .order_by(ct.membership.c.case_id, ct.membership.c.symptom, ct.membership.c.check)
        .limit(limit)
    )
    return [_as_failing(db, row, words) for row in db.execute(query).all()]


def worst(db: Connection, sweep_id: int, cluster_id: int, limit: int = 200) -> list[Failing]:
    """The cases of a cluster in a sweep, worst measure first, those without one last."""
    query = (
        _failing(sweep_id)
        .where(ct.membership.c.cluster_id == cluster_id)
        .order_by(ct.membership.c.symptom, t.result.c.measure.desc().nulls_last(), ct.membership.c.case_id)
        .limit(limit)
    )
    return [_as_failing(db, row, words=True) for row in db.execute(query).all()]


def failing_case(db: Connection, sweep_id: int, case_hash: str) -> list[Failing]:
    """Everything one case (by a prefix of its hash) fails by in a sweep, causes before symptoms."""
    query = (
        _failing(sweep_id)
        .where(t.case.c.hash.startswith(case_hash, autoescape=True))
        .order_by(ct.membership.c.case_id, ct.membership.c.symptom, ct.membership.c.check)
    )
    return [_as_failing(db, row, words=True) for row in db.execute(query).all()]


def blocked_groups(db: Connection, sweep_id: int, cluster_id: int) -> list[int]:
    """Ids of the groups of entries that a cluster keeps from green in a sweep."""
    block = ct.group_block.c
    query = select(block.group_id).where(block.cluster_id == cluster_id, block.sweep_id == sweep_id)
    return list(db.execute(query.order_by(block.group_id)).scalars())


def standing_by(db: Connection, sweep_id: int) -> dict[int, str]:
    """Group id -> hash of the workload by whose findings it stands in a triaged sweep."""
    query = (
        select(ct.stands_by.c.group_id, t.workload.c.hash)
        .join(t.workload, t.workload.c.id == ct.stands_by.c.workload_id)
        .where(ct.stands_by.c.sweep_id == sweep_id)
    )
    return {row.group_id: row.hash for row in db.execute(query)}


def failing_checks(
    db: Connection, sweep_id: int, workloads: Sequence[str]
) -> dict[str, dict[Variant, frozenset[Check]]]:
    """Workload hash -> variant -> the checks it fails in a triaged sweep."""
    found: dict[str, dict[Variant, set[Check]]] = {}
    for start in range(0, len(workloads), 500):
        query = (
            select(t.workload.c.hash, t.case.c.variant, ct.membership.c.check)
            .join(t.case, t.case.c.id == ct.membership.c.case_id)
            .join(t.workload, t.workload.c.id == t.case.c.workload_id)
            .where(ct.membership.c.sweep_id == sweep_id, t.workload.c.hash.in_(workloads[start : start + 500]))
        )
        for hash_, text, check in db.execute(query):
            found.setdefault(hash_, {}).setdefault(queries.variant(text), set()).add(Check(check))
    return {
        hash_: {variant: frozenset(checks) for variant, checks in by_variant.items()}
        for hash_, by_variant in found.items()
    }


def keys_by_group(db: Connection, sweep_id: int) -> dict[int, frozenset[str]]:
    """Group id -> the keys of every cluster that keeps it from green in a sweep."""
    query = (
        select(ct.group_block.c.group_id, ct.cluster.c.key)
        .join(ct.cluster, ct.cluster.c.id == ct.group_block.c.cluster_id)
        .where(ct.group_block.c.sweep_id == sweep_id)
    )
    found: dict[int, set[str]] = {}
    for group_id, key in db.execute(query):
        found.setdefault(group_id, set()).add(key)
    return {group_id: frozenset(keys) for group_id, keys in found.items()}


def blocking(db: Connection, sweep_id: int, group_id: int) -> list[ClusterCount]:
    """Every cluster between a group of entries and green, in the order of fixes."""
    of_group = select(ct.group_block.c.cluster_id).where(
        ct.group_block.c.sweep_id == sweep_id, ct.group_block.c.group_id == group_id
    )
    query = counted(sweep_id).where(ct.cluster.c.id.in_(of_group)).order_by(ct.cluster_count.c.place)
    return [cluster_count(row) for row in db.execute(query)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Triaged:
    """What was kept when a sweep was triaged."""

    sweep_id: int
    lane: str
    key_version: str
    made: float
    clusters: int
    grade: Mapping[str, Any]
    unlock: Mapping[str, Any]
    report: Mapping[str, Any] | None


def triaged(db: Connection, sweep_id: int) -> Triaged | None:
    """What was kept of a sweep; None where it has not been triaged."""
    row = db.execute(select(ct.triage).where(ct.triage.c.sweep_id == sweep_id)).first()
    return None if row is None else Triaged(**row._mapping)


def held_cases(db: Connection, sweep_id: int) -> dict[tuple[int, str, str], list[int]]:
    """(case id, check, outcome) -> the clusters it was put into when the sweep was triaged last."""
    member = ct.membership.c
    query = select(member.case_id, member.check, member.kind, member.detail, member.cluster_id).where(
        member.sweep_id == sweep_id, member.symptom.is_(False)
    )
    found: dict[tuple[int, str, str], list[int]] = {}
    for case_id, check, kind, detail, cluster_id in db.execute(query):
        found.setdefault((case_id, check, str(queries.outcome(kind, detail))), []).append(cluster_id)
    return found


def entries_in(db: Connection, cluster_id: int, sweep_id: int, plan_id: int) -> int | None:
    """Entries the cluster blocked in a sweep, if that sweep had this plan."""
    query = (
        select(ct.cluster_count.c.entries)
        .join(t.sweep, t.sweep.c.id == ct.cluster_count.c.sweep_id)
        .where(
            ct.cluster_count.c.cluster_id == cluster_id,
            ct.cluster_count.c.sweep_id == sweep_id,
            t.sweep.c.plan_id == plan_id,
        )
    )
    return db.execute(query).scalar()


def triaged_before(db: Connection, sweep_id: int, lane: str) -> list[int]:
    """Ids of the triaged sweeps of a lane that are older than this one, newest first."""
    query = select(ct.triage.c.sweep_id).where(ct.triage.c.lane == lane, ct.triage.c.sweep_id < sweep_id)
    return list(db.execute(query.order_by(ct.triage.c.sweep_id.desc())).scalars())


def newest_triaged(db: Connection, lane: str) -> int | None:
    """The id of the newest triaged sweep of a lane."""
    query = select(ct.triage.c.sweep_id).where(ct.triage.c.lane == lane).order_by(ct.triage.c.sweep_id.desc())
    return db.execute(query.limit(1)).scalar()


def triaged_after(db: Connection, sweep_id: int, lane: str) -> bool:
    """Has a newer sweep of the lane been triaged already?"""
    newer = exists().where(ct.triage.c.lane == lane, ct.triage.c.sweep_id > sweep_id)
    return bool(db.execute(select(newer)).scalar())


def cluster_row(row: Any) -> ClusterRow:
    return ClusterRow(
        id=row.id,
        lane=row.lane,
        key=row.key,
        key_version=row.key_version,
        check=Check(row.check),
        outcome=Outcome(Kind(row.kind), row.detail),
        rung=Rung(row.rung),
        at_fault=AtFault(row.at_fault),
        state=State(row.state),
        version=row.version,
        assignee=row.assignee,
        merged_into=row.merged_into,
        born_sweep_id=row.born_sweep_id,
        seen_sweep_id=row.seen_sweep_id,
        fixed_build_id=row.fixed_build_id,
    )


def cluster_count(row: Any) -> ClusterCount:
    """A row of :func:`counted` as a value."""
    return ClusterCount(
        cluster=cluster_row(row),
        state=State(row.count_state),
        workloads=row.count_workloads,
        cases=row.count_cases,
        attempts=row.count_attempts,
        example=row.count_attempt_id,
        entries=row.count_entries,
        downloads=row.count_downloads,
        sole_entries=row.count_sole_entries,
        sole_downloads=row.count_sole_downloads,
        place=row.count_place,
        unlocked_entries=row.count_unlocked_entries,
        unlocked_downloads=row.count_unlocked_downloads,
    )


def _failing(sweep_id: int) -> Select[Any]:
    member = ct.membership.c
    return (
        select(
            ct.membership,
            t.case.c.hash.label("case_hash"),
            t.case.c.variant,
            t.attempt.c.kind.label("attempt_kind"),
            t.workload.c.hash,
            t.workload.c.family,
            t.workload.c.class_name,
            t.result.c.measure,
            t.result.c.blob_id,
        )
        .join(t.case, t.case.c.id == member.case_id)
        .join(t.workload, t.workload.c.id == t.case.c.workload_id)
        .join(t.attempt, t.attempt.c.id == member.attempt_id)
        .join(t.result, and_(t.result.c.attempt_id == member.attempt_id, t.result.c.check == member.check))
        .where(member.sweep_id == sweep_id)
    )


def _as_failing(db: Connection, row: Row[Any], words: bool) -> Failing:
    return Failing(
        cluster_id=row.cluster_id,
        case_id=row.case_id,
        case=row.case_hash,
        attempt=row.attempt_id,
        attempt_kind=AttemptKind(row.attempt_kind),
        workload=row.hash,
        family=row.family,
        class_name=row.class_name,
        variant=Variant.parse(row.variant),
        check=Check(row.check),
        outcome=Outcome(Kind(row.kind), row.detail),
        key=row.key,
        symptom=row.symptom,
        measure=row.measure,
        words=str(queries.blob(db, row.blob_id).get("words", "")) if words else "",
    )
