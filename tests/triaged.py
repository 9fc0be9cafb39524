"""Little sweeps that are finished and triaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Engine

from neuronqa.db import queries
from neuronqa.db.rows import AttemptRecord
from neuronqa.db.store import Store
from neuronqa.domain.build import BuildVector
from neuronqa.domain.workload import Workload
from neuronqa.report.build import triaged
from neuronqa.sweep.standings import standings
from tests.builders import COMPILED, EAGER, open_sweep, record, summary, vector


def sweep(
    engine: Engine,
    plan_id: int,
    name: str,
    records: Sequence[AttemptRecord],
    build: str | BuildVector = "p",
    **changes: Any,
) -> int:
    """A finished, triaged sweep. `build`: what sets its build apart, or the whole of it."""
    store = Store(engine)
    of = vector(passes=build) if isinstance(build, str) else build
    sweep_id = open_sweep(store, plan_id, name=name, build=of, catalog="little", workers=1, profile="ideal")
    store.write(sweep_id, [replace(one, ticket=f"{name[:8]}{one.ticket}"[:40]) for one in records])
    store.finish_sweep(sweep_id, "done", 1.0, summary(**changes))
    with engine.connect() as db:
        settled = standings(db, queries.sweep(db, name))
    store.save_standings(sweep_id, settled.states.items())
    triaged(engine, name)
    return sweep_id


def both(of: Workload, eager: Any = None, compiled: Any = None) -> list[AttemptRecord]:
    return [record(of, EAGER, eager), record(of, COMPILED, compiled)]
