"""The writer: plans, sweeps and attempts go in here, and nothing that went in is ever changed.

One driver writes; every method is one transaction. Readers use :mod:`neuronqa.db.queries`.
"""

from __future__ import annotations

import secrets
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Table, bindparam, insert, literal, null, select, text, update
from sqlalchemy.dialects import postgresql, sqlite

from neuronqa.db import copying, rows
from neuronqa.db import tables as t
from neuronqa.db import tally_tables as tt
from neuronqa.db.rows import AttemptRecord
from neuronqa.domain.build import BuildVector
from neuronqa.domain.case import Case
from neuronqa.domain.catalog import CatalogInfo, Entry
from neuronqa.domain.identity import strict
from neuronqa.domain.ladder import EntryState
from neuronqa.domain.plan import PlanGroup
from neuronqa.domain.policy import Policy
from neuronqa.domain.workload import Workload
from neuronqa.errors import EnvironmentFault

CHUNK = 1000
Item = TypeVar("Item")


@dataclass(frozen=True, kw_only=True)
class SweepHeader:
    """What is fixed when a sweep starts."""

    name: str
    plan_id: int
    build: BuildVector
    device: str
    policy: Policy
    policy_json: Mapping[str, Any]
    options: Mapping[str, Any]
    seed: int
    cores: int
    terms: str = ""
    """How cases are executed and judged; verdicts are taken over only where it is the same, and from nobody without."""


class Store:
    """Writes to an open database. Not thread-safe: the driver is the sole writer."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._terms: dict[int, int] = {}
        """Sweep -> the term in which this driver holds it."""
        self._written = 0
        self._analysed = 0
        """Attempts that this store has written, and of those the ones PostgreSQL has been told of."""
        self._insert = postgresql.insert if engine.dialect.name == "postgresql" else sqlite.insert

    def take_up(self, sweep_id: int) -> None:
        """Become the sweep's driver: from now on, whoever drove it before is refused."""
        raised = (
            update(t.sweep).where(t.sweep.c.id == sweep_id).values(term=t.sweep.c.term + 1).returning(t.sweep.c.term)
        )
        with self.engine.begin() as db:
            self._terms[sweep_id] = int(db.execute(raised).scalar_one())

    def _fence(self, db: Connection, sweep_id: int) -> None:
        """Let nobody take the sweep up before this transaction ends. Raises EnvironmentFault if somebody has."""
        held = self._terms.get(sweep_id)
        if held is None:
            return
        now = db.execute(select(t.sweep.c.term).where(t.sweep.c.id == sweep_id).with_for_update(read=True)).scalar()
        if now != held:
            raise EnvironmentFault(
                "another driver has taken this sweep up", hint="nothing is lost: what it has not executed, it will"
            )

    def known_plan(self, key: str) -> int | None:
        """The id of the plan stored under `key`, if there is one."""
        with self.engine.connect() as db:
            return db.execute(select(t.plan.c.id).where(t.plan.c.key == key)).scalar()

    def save_plan(
        self,
        key: str,
        info: CatalogInfo,
        versions: Mapping[str, str],
        workloads: Iterable[Workload],
        entries: Iterable[tuple[Entry, PlanGroup]],
    ) -> int:
        """Store a plan nobody stored before. Streams `workloads` first, then `entries`."""
        with self.engine.begin() as db:
            plan_id = self._new_id(
                db,
                t.plan,
                key=key,
                catalog=info.name,
                source=info.source.value,
                catalog_sha256=info.sha256,
                registered=info.registered,
                downloads=0,
                versions=dict(versions),
            )
            self._save_workloads(db, workloads)
            self._save_entries(db, plan_id, entries)
            self._analyse(db, t.workload, t.plan_group, t.entry)
            return plan_id

    def save_workloads(self, workloads: Iterable[Workload]) -> None:
        """Store workloads that no plan names: those of the controls and of the audit."""
        with self.engine.begin() as db:
            self._save_workloads(db, workloads)

    def create_sweep(self, header: SweepHeader) -> int:
        """Open a sweep in state `running`."""
        with self.engine.begin() as db:
            return self._new_id(
                db,
                t.sweep,
                name=header.name,
                plan_id=header.plan_id,
                build_id=self._build_id(db, header.build),
                device=header.device,
                profile=header.build.profile,
                policy=strict(header.policy_json),
                policy_name=header.policy.name,
                policy_sha256=header.policy.sha256,
                options=strict(header.options),
                terms=header.terms or None,
                seed=header.seed,
                state="running",
                started=time.time(),
                wall_s=0.0,
                cores=header.cores,
            )

    def plan_cases(self, sweep_id: int, cases: Iterable[Case]) -> None:
        """Write ahead what the sweep means to execute, in order."""
        with self.engine.begin() as db:
            for start, chunk in enumerate(_chunks(cases)):
                ids = self._case_ids(db, chunk)
                planned = [
                    {"sweep_id": sweep_id, "case_id": ids[case], "position": start * CHUNK + i}
                    for i, case in enumerate(chunk)
                ]
                db.execute(self._insert(t.sweep_case).on_conflict_do_nothing(), planned)
            self._analyse(db, t.case, t.sweep_case)

    def write(self, sweep_id: int, records: Sequence[AttemptRecord]) -> None:
        """Store attempts with their results, blockers and blobs. A ticket that is already there is left alone."""
        if not records:
            return
        with self.engine.begin() as db:
            self._fence(db, sweep_id)
            fresh = self._unseen(db, records)
            case_ids = self._case_ids(db, [record.case for record in fresh])
            bodies = rows.Bodies.of(fresh)
            blobs = rows.Blobs(self._save_blobs(db, bodies.by_sha256), bodies.names)
            attempts = [rows.attempt_row(sweep_id, record, case_ids, blobs) for record in fresh]
            owned = list(zip(self._new_ids(db, t.attempt, attempts), fresh, strict=True))
            found = [(id_, finding) for id_, record in owned for finding in record.findings]
            self._bulk(db, t.result, (rows.result_row(id_, finding, blobs) for id_, finding in found))
            self._bulk(db, t.blocker, (row for id_, finding in found for row in rows.blocker_rows(id_, finding)))
            self._bulk(db, tt.message, (row for id_, finding in found for row in rows.message_row(id_, finding)))
            judged = [rows.control_row(sweep_id, id_, r.control) for id_, r in owned if r.control is not None]
            self._bulk(db, t.control, judged)
            self._written += len(owned)
            if self._written >= 2 * self._analysed:
                self._analyse(db, t.attempt)
                self._analysed = self._written

    def carry(self, sweep_id: int, sources: Sequence[int], drawn: Sequence[int] = ()) -> None:
        """Take over attempts of earlier sweeps, with their probes and results, as attempts of this one.

        Those `drawn` are only noted, to be compared with what executing them again comes to.
        """
        with self.engine.begin() as db:
            for chunk in _chunks(sources, 500):
                self._carry(db, sweep_id, chunk)
            for chunk in _chunks(drawn, 500):
                rows_ = select(literal(sweep_id), t.attempt.c.id, t.attempt.c.case_id).where(t.attempt.c.id.in_(chunk))
                db.execute(insert(t.carried).from_select(["sweep_id", "source_id", "case_id"], rows_))

    def _carry(self, db: Connection, sweep_id: int, sources: Sequence[int]) -> None:
        found = [dict(row._mapping) for row in db.execute(select(t.attempt).where(t.attempt.c.id.in_(sources)))]
        tickets = {row["ticket"]: secrets.token_hex(16) for row in found}
        probes = select(t.attempt).where(t.attempt.c.probe_of.in_(list(tickets)))
        found += [dict(row._mapping) for row in db.execute(probes)]
        ids = self._new_ids(db, t.attempt, [rows.carried_row(sweep_id, row, tickets) for row in found])
        links = [
            {"sweep_id": sweep_id, "source_id": row["id"], "case_id": row["case_id"], "attempt_id": id_}
            for id_, row in zip(ids, found, strict=True)
        ]
        db.execute(insert(t.carried), links)
        for table in (t.result, t.blocker):
            columns = [column for column in table.c if column.name != "attempt_id"]
            copied = (
                select(t.carried.c.attempt_id, *columns)
                .join(table, table.c.attempt_id == t.carried.c.source_id)
                .where(t.carried.c.sweep_id == sweep_id, t.carried.c.source_id.in_([row["id"] for row in found]))
            )
            db.execute(insert(table).from_select(["attempt_id", *(column.name for column in columns)], copied))

    def save_standings(self, sweep_id: int, standings: Iterable[tuple[int, EntryState]]) -> None:
        """Replace the kept answer of the entry-state function for every group of the sweep's plan."""
        with self.engine.begin() as db:
            self._fence(db, sweep_id)
            db.execute(t.standing.delete().where(t.standing.c.sweep_id == sweep_id))
            self._bulk(db, t.standing, (rows.standing_row(sweep_id, group_id, state) for group_id, state in standings))

    def finish_sweep(
        self, sweep_id: int, state: str, wall_s: float, summary: Mapping[str, Any] | None, cores: int = 0
    ) -> None:
        """Close a sweep (or a leg of it): `wall_s` is added to what earlier legs took.

        `cores`: how many there were, where that was not known when it began.
        """
        with self.engine.begin() as db:
            self._fence(db, sweep_id)
            db.execute(
                update(t.sweep)
                .where(t.sweep.c.id == sweep_id)
                .values(
                    state=state,
                    finished=time.time(),
                    wall_s=t.sweep.c.wall_s + wall_s,
                    cores=cores or t.sweep.c.cores,
                    summary=null() if summary is None else strict(summary),
                )
            )

    def reopen_sweep(self, sweep_id: int) -> None:
        """Mark a sweep as running again, for `--resume`: until it is settled anew there is nothing to report."""
        with self.engine.begin() as db:
            reopened = {"state": "running", "finished": None, "summary": null()}
            db.execute(update(t.sweep).where(t.sweep.c.id == sweep_id).values(reopened))

    def _save_workloads(self, db: Connection, workloads: Iterable[Workload]) -> None:
        statement = self._insert(t.workload).on_conflict_do_nothing(index_elements=["hash"])
        for chunk in _chunks(workloads):
            db.execute(statement, [rows.workload_row(workload) for workload in chunk])

    def _save_entries(self, db: Connection, plan_id: int, planned: Iterable[tuple[Entry, PlanGroup]]) -> None:
        ids: dict[PlanGroup, int] = {}
        weights: dict[int, list[int]] = {}
        for chunk in _chunks(planned):
            fresh = list(dict.fromkeys(group for _, group in chunk if group not in ids))
            workload_ids = self._ids_by_hash(db, t.workload, [group.workload for group in fresh if group.workload])
            group_rows = [rows.group_row(plan_id, group, workload_ids) for group in fresh]
            ids.update(zip(fresh, self._new_ids(db, t.plan_group, group_rows), strict=True))
            for entry, group in chunk:
                weight = weights.setdefault(ids[group], [0, 0])
                weight[0] += 1
                weight[1] += entry.downloads
            self._bulk(db, t.entry, [rows.entry_row(plan_id, ids[group], entry) for entry, group in chunk])
        self._save_weights(db, plan_id, weights)

    def _save_weights(self, db: Connection, plan_id: int, weights: Mapping[int, Sequence[int]]) -> None:
        if not weights:
            return
        db.execute(
            update(t.plan_group)
            .where(t.plan_group.c.id == bindparam("group"))
            .values(entries=bindparam("n"), downloads=bindparam("d")),
            [{"group": group_id, "n": n, "d": d} for group_id, (n, d) in weights.items()],
        )
        total = sum(d for _, d in weights.values())
        db.execute(update(t.plan).where(t.plan.c.id == plan_id).values(downloads=total))

    def _unseen(self, db: Connection, records: Sequence[AttemptRecord]) -> list[AttemptRecord]:
        by_ticket: dict[str, AttemptRecord] = {}
        for record in records:
            by_ticket.setdefault(record.ticket, record)
        there = copying.among(db, t.attempt.c.ticket, list(by_ticket))
        seen = db.execute(select(t.attempt.c.ticket).where(there)).scalars()
        for ticket in seen:
            del by_ticket[ticket]
        return list(by_ticket.values())

    def _case_ids(self, db: Connection, cases: Sequence[Case]) -> dict[Case, int]:
        hashes = {case: case.id for case in dict.fromkeys(cases)}
        found = self._ids_by_hash(db, t.case, list(hashes.values()))
        missing = [case for case, hash_ in hashes.items() if hash_ not in found]
        if missing:
            workload_ids = self._ids_by_hash(db, t.workload, [case.workload for case in missing])
            db.execute(
                self._insert(t.case).on_conflict_do_nothing(index_elements=["hash"]),
                [
                    {
                        "hash": hashes[case],
                        "workload_id": workload_ids[case.workload],
                        "device": case.device,
                        "variant": str(case.variant),
                    }
                    for case in missing
                ],
            )
            found |= self._ids_by_hash(db, t.case, [hashes[case] for case in missing])
        return {case: found[hash_] for case, hash_ in hashes.items()}

    def _ids_by_hash(self, db: Connection, table: Table, hashes: Sequence[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for chunk in _chunks(dict.fromkeys(hashes), 500):
            stored = db.execute(select(table.c.hash, table.c.id).where(copying.among(db, table.c.hash, chunk)))
            found.update({row.hash: row.id for row in stored})
        return found

    def _build_id(self, db: Connection, vector: BuildVector) -> int:
        db.execute(
            self._insert(t.build).on_conflict_do_nothing(index_elements=["hash"]),
            {"hash": vector.hash, "vector": strict(vector.__dict__)},
        )
        return self._ids_by_hash(db, t.build, [vector.hash])[vector.hash]

    def _save_blobs(self, db: Connection, bodies: Mapping[str, bytes]) -> dict[str, int]:
        if not bodies:
            return {}
        packed = [{"sha256": sha, "size": len(body), "data": zlib.compress(body, 6)} for sha, body in bodies.items()]
        found = self._add_blobs(db, packed)
        for chunk in _chunks([sha for sha in bodies if sha not in found], 500):
            there = copying.among(db, t.blob.c.sha256, chunk)
            stored = db.execute(select(t.blob.c.sha256, t.blob.c.id).where(there))
            found.update({row.sha256: row.id for row in stored})
        return found

    def _add_blobs(self, db: Connection, packed: Sequence[rows.Row]) -> dict[str, int]:
        if db.dialect.name == "postgresql":
            return copying.add_blobs(db, packed)
        fresh = (
            self._insert(t.blob)
            .on_conflict_do_nothing(index_elements=["sha256"])
            .returning(t.blob.c.sha256, t.blob.c.id)
        )
        return {row.sha256: row.id for row in db.execute(fresh, packed)}

    def _new_ids(self, db: Connection, table: Table, new: Sequence[rows.Row]) -> list[int]:
        if not new:
            return []
        if db.dialect.name == "postgresql":
            return copying.new_ids(db, table, new)
        statement = insert(table).returning(table.c.id, sort_by_parameter_order=True)
        return list(db.execute(statement, new).scalars())

    def _bulk(self, db: Connection, table: Table, new: Iterable[rows.Row]) -> None:
        if db.dialect.name == "postgresql":
            copying.copy(db, table, new)
            return
        for chunk in _chunks(new):
            db.execute(insert(table), chunk)

    def _analyse(self, db: Connection, *tables: Table) -> None:
        """Tell PostgreSQL how much there is now.

        Until it looks by itself, it sorts the whole plan for every page of cases, and reads all attempts for each.
        """
        if db.dialect.name == "postgresql":
            for table in tables:
                db.execute(text(f"ANALYZE {db.dialect.identifier_preparer.format_table(table)}"))

    def _new_id(self, db: Connection, table: Table, **values: Any) -> int:
        return int(db.execute(insert(table).values(**values).returning(table.c.id)).scalar_one())


def _chunks(items: Iterable[Item], size: int = CHUNK) -> Iterator[list[Item]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
