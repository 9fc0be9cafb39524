"""What readers ask of the database. Every function is read-only and takes an open connection."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, exists, func, select

from neuronqa.db import tables as t
from neuronqa.db.columns import escape
from neuronqa.domain.case import AttemptKind, Variant
from neuronqa.domain.catalog import CatalogInfo, Source
from neuronqa.domain.outcome import Check, Kind, Outcome
from neuronqa.domain.plan import PlanGroup, PlannedGroup
from neuronqa.domain.workload import Workload
from neuronqa.errors import BadInput

COUNTING = tuple(kind.value for kind in AttemptKind if kind.counts)
EXECUTED = (AttemptKind.RECORD.value, AttemptKind.ALONE.value)
"""The counting ones that this sweep itself paid for."""
BLOCKING = (*COUNTING, AttemptKind.PROBE.value)
"""Probes add blockers, never passes."""


@dataclass(frozen=True, kw_only=True)
class SweepRow:
    """A sweep as it stands in the database."""

    id: int
    name: str
    plan_id: int
    catalog: CatalogInfo
    downloads: int
    device: str
    profile: str
    build: Mapping[str, Any]
    build_hash: str
    policy: Mapping[str, Any]
    policy_name: str
    policy_sha256: str
    options: Mapping[str, Any]
    seed: int
    state: str
    started: float
    finished: float | None
    wall_s: float
    cores: int
    versions: Mapping[str, str]
    summary: Mapping[str, Any] | None


def sweep(db: Connection, name: str | None = None) -> SweepRow:
    """The sweep called `name` (a prefix will do where it is unique), or the newest. Raises BadInput for none."""
    columns = (
        *t.sweep.c,
        t.plan.c.catalog,
        t.plan.c.source,
        t.plan.c.catalog_sha256,
        t.plan.c.registered,
        t.plan.c.downloads,
        t.plan.c.versions,
        t.build.c.vector,
        t.build.c.hash.label("build_hash"),
    )
    query = (
        select(*columns)
        .join(t.plan, t.plan.c.id == t.sweep.c.plan_id)
        .join(t.build, t.build.c.id == t.sweep.c.build_id)
    )
    if name:
        asked = escape(name)
        query = query.where(t.sweep.c.name.startswith(asked, autoescape=True)).order_by(t.sweep.c.name != asked)
    rows = db.execute(query.order_by(t.sweep.c.id.desc()).limit(2)).all()
    exact = [row for row in rows if row.name == name]
    if not rows:
        raise BadInput(
            f"there is no sweep called {name!r}" if name else "there is no sweep in this database yet",
            hint="`neuronqa sweeps list` shows them; `neuronqa sweep --catalog top-100k` makes one",
        )
    if name and len(rows) > 1 and not exact:
        raise BadInput(f"several sweeps begin with {name!r}", hint="`neuronqa sweeps list` shows them")
    return _sweep_row((exact or rows)[0])


def sweeps(db: Connection, limit: int = 50) -> list[Row[Any]]:
    """The newest sweeps: name, catalog, source, policy, device, profile, state, started, wall_s, attempts."""
    attempts = (
        select(func.count()).where(t.attempt.c.sweep_id == t.sweep.c.id).correlate(t.sweep).scalar_subquery()
    ).label("attempts")
    query = (
        select(
            t.sweep.c.name,
            t.plan.c.catalog,
            t.plan.c.source,
            t.sweep.c.policy_name,
            t.sweep.c.device,
            t.sweep.c.profile,
            t.sweep.c.state,
            t.sweep.c.started,
            t.sweep.c.wall_s,
            attempts,
        )
        .join(t.plan, t.plan.c.id == t.sweep.c.plan_id)
        .order_by(t.sweep.c.id.desc())
        .limit(limit)
    )
    return list(db.execute(query))


def groups(db: Connection, plan_id: int) -> list[PlannedGroup]:
    """Every group of a plan with its weight."""
    return [planned_group(row) for row in db.execute(groups_of(plan_id).order_by(t.plan_group.c.id))]


def groups_of(plan_id: int) -> Select[Any]:
    """The rows :func:`planned_group` reads."""
    return (
        select(t.plan_group, t.workload.c.hash)
        .outerjoin(t.workload, t.workload.c.id == t.plan_group.c.workload_id)
        .where(t.plan_group.c.plan_id == plan_id)
    )


def planned_group(row: Row[Any]) -> PlannedGroup:
    """A group as the plan holds it."""
    return PlannedGroup(
        id=row.id,
        group=PlanGroup(
            listing=Outcome.parse(row.listing),
            kernel_key=row.kernel_key,
            graph_key=row.graph_key,
            workload=row.hash or "",
            model_type=row.model_type,
            class_name=row.class_name,
        ),
        entries=row.entries,
        downloads=row.downloads,
    )


def entry_names(db: Connection, plan_id: int, groups: Sequence[int]) -> frozenset[str]:
    """Ids of the entries of these groups."""
    found: set[str] = set()
    for start in range(0, len(groups), 500):
        chunk = list(groups[start : start + 500])
        query = select(t.entry.c.name).where(t.entry.c.plan_id == plan_id, t.entry.c.group_id.in_(chunk))
        found.update(db.execute(query).scalars())
    return frozenset(found)


def workloads(db: Connection, hashes: Sequence[str]) -> dict[str, Workload]:
    """The workloads of the given hashes."""
    found: dict[str, Workload] = {}
    for start in range(0, len(hashes), 500):
        chunk = list(hashes[start : start + 500])
        query = select(t.workload.c.hash, t.workload.c.spec).where(t.workload.c.hash.in_(chunk))
        found.update({row.hash: Workload.from_json(row.spec) for row in db.execute(query)})
    return found


def workload_ids(db: Connection, hashes: Sequence[str]) -> dict[str, int]:
    """The ids of these workloads by hash."""
    found: dict[str, int] = {}
    for start in range(0, len(hashes), 500):
        query = select(t.workload.c.hash, t.workload.c.id).where(t.workload.c.hash.in_(hashes[start : start + 500]))
        found.update({row.hash: row.id for row in db.execute(query)})
    return found


def plan_of(db: Connection, sweep_id: int) -> int:
    """The id of a sweep's plan."""
    return int(db.execute(select(t.sweep.c.plan_id).where(t.sweep.c.id == sweep_id)).scalar_one())


def sweep_name(db: Connection, sweep_id: int) -> str:
    """The name of the sweep of this id."""
    return str(db.execute(select(t.sweep.c.name).where(t.sweep.c.id == sweep_id)).scalar_one())


def builds(db: Connection, sweep_ids: Sequence[int]) -> dict[int, int]:
    """The build's id of each of these sweeps."""
    found: dict[int, int] = {}
    for start in range(0, len(sweep_ids), 500):
        query = select(t.sweep.c.id, t.sweep.c.build_id).where(t.sweep.c.id.in_(sweep_ids[start : start + 500]))
        found.update({row.id: row.build_id for row in db.execute(query)})
    return found


@dataclass(frozen=True, kw_only=True)
class CaseRow:
    """A case that some sweep planned."""

    hash: str
    device: str
    variant: Variant
    workload: Workload


def case(db: Connection, name: str) -> CaseRow:
    """The case whose hash begins with `name`. Raises BadInput for none, and for more than one."""
    query = (
        select(t.case.c.hash, t.case.c.device, t.case.c.variant, t.workload.c.spec)
        .join(t.workload, t.workload.c.id == t.case.c.workload_id)
        .where(t.case.c.hash.startswith(name, autoescape=True))
        .limit(2)
    )
    rows = db.execute(query).all()
    if len(rows) != 1 or not name:
        many = "more than one" if rows else "no"
        raise BadInput(f"{many} case is named {name!r}", hint="a case's name is a hash of 32 digits")
    row = rows[0]
    return CaseRow(
        hash=row.hash,
        device=row.device,
        variant=variant(row.variant),
        workload=Workload.from_json(row.spec),
    )


def findings(
    db: Connection, sweep_id: int, kinds: Sequence[str] = COUNTING, workloads: Sequence[str] | None = None
) -> dict[str, dict[tuple[Variant, Check], Outcome]]:
    """Outcomes by workload hash, then by (variant, check). The first attempt counts, and a solo run for its record.

    With `workloads` (hashes), of these alone.
    """
    query = (
        select(
            t.workload.c.hash,
            t.case.c.variant,
            t.result.c.check,
            t.result.c.kind.label("outcome"),
            t.result.c.detail,
        )
        .select_from(t.attempt)
        .join(t.case, t.case.c.id == t.attempt.c.case_id)
        .join(t.workload, t.workload.c.id == t.case.c.workload_id)
        .join(t.result, t.result.c.attempt_id == t.attempt.c.id)
        .where(valid(sweep_id, kinds))
        .order_by(t.attempt.c.id)
    )
    found: dict[str, dict[tuple[Variant, Check], Outcome]] = {}
    if workloads is None:
        _add_findings(found, db.execute(query))
        return found
    for start in range(0, len(workloads), 500):
        _add_findings(found, db.execute(query.where(t.workload.c.hash.in_(workloads[start : start + 500]))))
    return found


def _add_findings(found: dict[str, dict[tuple[Variant, Check], Outcome]], rows: Iterable[Row[Any]]) -> None:
    for row in rows:
        key = (variant(row.variant), Check(row.check))
        found.setdefault(row.hash, {}).setdefault(key, outcome(row.outcome, row.detail))


@lru_cache(maxsize=1 << 16)
def outcome(kind: str, detail: str) -> Outcome:
    """A sweep has many rows and few outcomes."""
    return Outcome(Kind(kind), detail)


@lru_cache(maxsize=1 << 10)
def variant(text: str) -> Variant:
    return Variant.parse(text)


def valid(sweep_id: int, kinds: Sequence[str]) -> ColumnElement[bool]:
    """Attempts of these kinds, without the records that a solo run replaced."""
    return and_(t.attempt.c.sweep_id == sweep_id, kept(sweep_id, kinds))


def kept(sweep_id: int, kinds: Sequence[str]) -> ColumnElement[bool]:
    """The same of attempts that are known to be the sweep's."""
    solo = t.attempt.alias("solo")
    replaced = exists().where(
        solo.c.sweep_id == sweep_id,
        solo.c.case_id == t.attempt.c.case_id,
        solo.c.kind == AttemptKind.ALONE.value,
    )
    record = t.attempt.c.kind == AttemptKind.RECORD.value
    return and_(t.attempt.c.kind.in_(list(kinds)), ~and_(record, replaced))


@dataclass(frozen=True, kw_only=True)
class Work:
    """How much a sweep executed itself; what it took over from earlier ones is not in it."""

    attempts: int
    workloads: int
    cases: int
    by_kind: Mapping[str, int]
    cpu_by_kind: Mapping[str, float]

    @property
    def cpu_s(self) -> float:
        return sum(self.cpu_by_kind.values())


def work(db: Connection, sweep_id: int) -> Work:
    """Attempts, distinct workloads and cases behind the counting ones, CPU seconds inside all."""
    carried = exists().where(t.carried.c.attempt_id == t.attempt.c.id)
    by_kind = db.execute(
        select(t.attempt.c.kind, func.count(), func.coalesce(func.sum(t.attempt.c.cpu_s), 0.0))
        .where(t.attempt.c.sweep_id == sweep_id, ~carried)
        .group_by(t.attempt.c.kind)
    ).all()
    distinct = db.execute(
        select(func.count(func.distinct(t.case.c.workload_id)), func.count(func.distinct(t.attempt.c.case_id)))
        .select_from(t.attempt)
        .join(t.case, t.case.c.id == t.attempt.c.case_id)
        .where(t.attempt.c.sweep_id == sweep_id, t.attempt.c.kind.in_(EXECUTED))
    ).one()
    return Work(
        attempts=sum(n for _, n, _ in by_kind),
        workloads=distinct[0],
        cases=distinct[1],
        by_kind={kind: n for kind, n, _ in by_kind},
        cpu_by_kind={kind: float(cpu) for kind, _, cpu in by_kind},
    )


def costs(db: Connection) -> list[tuple[str, str, int, float]]:
    """(family, variant, attempts, CPU seconds) over the records of every sweep."""
    query = (
        select(t.workload.c.family, t.case.c.variant, func.count(), func.sum(t.attempt.c.cpu_s))
        .select_from(t.attempt)
        .join(t.case, t.case.c.id == t.attempt.c.case_id)
        .join(t.workload, t.workload.c.id == t.case.c.workload_id)
        .where(t.attempt.c.kind.in_(EXECUTED))
        .group_by(t.workload.c.family, t.case.c.variant)
    )
    return [(family, variant, int(n), float(cpu or 0.0)) for family, variant, n, cpu in db.execute(query)]


def controls(db: Connection, sweep_id: int) -> list[Row[Any]]:
    """Every judged control: name, guards, expected, judged, caught."""
    query = select(t.control).where(t.control.c.sweep_id == sweep_id).order_by(t.control.c.attempt_id)
    return list(db.execute(query))


def reconciliation(db: Connection, sweep_id: int, plan_id: int) -> dict[str, int]:
    """Entries by label of their kept standing, added up by SQL over the entries themselves."""
    query = (
        select(func.coalesce(t.standing.c.label, "(none)"), func.count())
        .select_from(t.entry)
        .outerjoin(t.standing, and_(t.standing.c.group_id == t.entry.c.group_id, t.standing.c.sweep_id == sweep_id))
        .where(t.entry.c.plan_id == plan_id)
        .group_by(t.standing.c.label)
    )
    return {row[0]: row[1] for row in db.execute(query)}


def blob(db: Connection, blob_id: int | None) -> dict[str, Any]:
    """The JSON a blob holds; an empty one for None."""
    if blob_id is None:
        return {}
    return unpacked(db.execute(select(t.blob.c.data).where(t.blob.c.id == blob_id)).scalar_one())


def unpacked(data: bytes) -> dict[str, Any]:
    """What :attr:`blob.data` says."""
    value: dict[str, Any] = json.loads(zlib.decompress(data))
    return value


def _sweep_row(row: Row[Any]) -> SweepRow:
    return SweepRow(
        id=row.id,
        name=row.name,
        plan_id=row.plan_id,
        catalog=CatalogInfo(
            name=row.catalog,
            source=Source(row.source),
            sha256=row.catalog_sha256,
            registered=row.registered,
            created="",
        ),
        downloads=row.downloads,
        device=row.device,
        profile=row.profile,
        build=row.vector,
        build_hash=row.build_hash,
        policy=row.policy,
        policy_name=row.policy_name,
        policy_sha256=row.policy_sha256,
        options=row.options,
        seed=row.seed,
        state=row.state,
        started=row.started,
        finished=row.finished,
        wall_s=row.wall_s,
        cores=row.cores,
        versions=row.versions,
        summary=row.summary,
    )
