"""Sweeps, what runs of one, and its controls."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row, func, select

from neuronqa.db import clusters, queries
from neuronqa.db import tables as t
from neuronqa.db.browse import ladder
from neuronqa.db.browse.listing import Listing, Sort
from neuronqa.db.queries import COUNTING, SweepRow


def listing() -> Listing:
    """Sweeps, newest first."""
    sweep, plan, build = t.sweep.c, t.plan.c, t.build.c
    rows = (
        select(
            sweep.name,
            plan.catalog,
            plan.source,
            sweep.policy_name.label("policy"),
            sweep.device,
            sweep.profile,
            func.substr(build.hash, 1, 12).label("build"),
            sweep.state,
            sweep.started,
            sweep.wall_s,
        )
        .select_from(t.sweep)
        .join(t.plan, plan.id == sweep.plan_id)
        .join(t.build, build.id == sweep.build_id)
    )
    return Listing(
        name="sweeps",
        rows=rows,
        key=sweep.name,
        sorts={"started": Sort(column=sweep.started, descending=True), "name": Sort(column=sweep.name)},
        filters={
            "catalog": plan.catalog,
            "source": plan.source,
            "policy": sweep.policy_name,
            "device": sweep.device,
            "profile": sweep.profile,
            "state": sweep.state,
        },
        facets=("catalog", "policy", "profile", "state"),
    )


def names(db: Connection, limit: int = 50) -> list[Row[Any]]:
    """The newest sweeps: name and catalog."""
    query = (
        select(t.sweep.c.name, t.plan.c.catalog)
        .join(t.plan, t.plan.c.id == t.sweep.c.plan_id)
        .order_by(t.sweep.c.id.desc())
        .limit(limit)
    )
    return list(db.execute(query))


def before(db: Connection, row: SweepRow) -> str:
    """The name of the newest earlier sweep of the same plan; empty where there is none."""
    earlier = select(t.sweep.c.name).where(t.sweep.c.plan_id == row.plan_id, t.sweep.c.id < row.id)
    return db.execute(earlier.order_by(t.sweep.c.id.desc()).limit(1)).scalar() or ""


def controls(sweep_id: int) -> Listing:
    """The controls of a sweep, missed ones first."""
    control = t.control.c
    rows = select(
        control.name,
        control.guards,
        control.expected,
        control.judged,
        control.caught,
        control.attempt_id.label("attempt"),
    ).where(control.sweep_id == sweep_id)
    return Listing(
        name="controls",
        rows=rows,
        key=control.attempt_id,
        sorts={"caught": Sort(column=control.caught), "name": Sort(column=control.name)},
        filters={"guards": control.guards, "caught": control.caught},
        facets=("guards",),
    )


SETTLING_S: Final = 600.0
"""A sweep that has not been triaged so long after its end will not be."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a sweep is."""

    state: str
    attempts: int
    planned: int
    last: float
    """When the newest attempt started; 0 for none."""
    awaited: bool
    """Is there more to come: results while it runs, or its rates and root causes, which are worked out after that?"""


def progress(db: Connection, row: SweepRow) -> Progress:
    """Attempts made and cases planned, counted over indexes alone."""
    made = select(func.count(), func.max(t.attempt.c.id)).where(
        t.attempt.c.sweep_id == row.id, t.attempt.c.kind.in_(COUNTING)
    )
    attempts, newest = db.execute(made).one()
    planned = db.execute(
        select(func.count()).select_from(t.sweep_case).where(t.sweep_case.c.sweep_id == row.id)
    ).scalar_one()
    last = db.execute(select(t.attempt.c.started).where(t.attempt.c.id == newest)).scalar() or 0.0
    settling = row.finished is not None and time.time() - row.finished < SETTLING_S
    awaited = row.state == "running" or (settling and clusters.triaged(db, row.id) is None)
    return Progress(state=row.state, attempts=attempts, planned=planned, last=last, awaited=awaited)


@dataclass(frozen=True, kw_only=True)
class Headline:
    """A sweep's honest rate; None where a control withheld it."""

    name: str
    low: float | None
    high: float | None


def headlines(db: Connection, row: SweepRow, limit: int = 30) -> list[Headline]:
    """Finished sweeps of the same catalog and policy up to this one, oldest first."""
    query = (
        select(t.sweep.c.name)
        .join(t.plan, t.plan.c.id == t.sweep.c.plan_id)
        .where(
            t.plan.c.catalog == row.catalog.name,
            t.sweep.c.policy_sha256 == row.policy_sha256,
            t.sweep.c.state == "done",
            t.sweep.c.id <= row.id,
        )
        .order_by(t.sweep.c.id.desc())
        .limit(limit)
    )
    made = []
    for name in reversed(db.execute(query).scalars().all()):
        gates = ladder.whole(db, queries.sweep(db, name))
        if gates:
            made.append(Headline(name=name, low=gates[-1].low, high=gates[-1].high))
    return made
