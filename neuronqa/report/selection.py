"""Which entries earlier sweeps speak of: what `failed:SWEEP` and `cluster:KEY` select."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection

from neuronqa.catalog.select import Results
from neuronqa.db import queries
from neuronqa.db.engine import open_engine
from neuronqa.db.queries import SweepRow
from neuronqa.domain.ladder import EntryState
from neuronqa.domain.outcome import Rung, Standing
from neuronqa.errors import BadInput
from neuronqa.report.build import causes
from neuronqa.sweep.standings import partial_standings, standings
from neuronqa.triage.causes import KEY_VERSION


def results_in(db: str | None) -> Results:
    """Answers from the database `db` names; it is opened only when something is asked."""
    asks: dict[str, Callable[[Connection, str], frozenset[str]]] = {"failed": failed, "cluster": in_cluster}

    def answer(field: str, key: str) -> frozenset[str]:
        engine = open_engine(db)
        try:
            with engine.connect() as connection:
                return asks[field](connection, key)
        finally:
            engine.dispose()

    return answer


def failed(db: Connection, name: str) -> frozenset[str]:
    """Ids of the entries that a sweep showed to fail, own verdicts and inherited ones; what could not be run is none.

    Raises BadInput when there is no such sweep.
    """
    row = queries.sweep(db, name)
    groups = [group for part in partial_standings(db, row) for group, state in part.states.items() if _fails(state)]
    return queries.entry_names(db, row.plan_id, groups)


def in_cluster(db: Connection, key: str) -> frozenset[str]:
    """Ids of the entries in whose verdict a root cause stands, in the newest sweep that saw it.

    Raises BadInput when no sweep of this database did.
    """
    for found in queries.sweeps(db):
        row = queries.sweep(db, found.name)
        names = _cluster(db, row, key)
        if names is not None:
            return names
    hint = f"`neuronqa triage list` shows keys; they begin with {KEY_VERSION}:"
    raise BadInput(f"no sweep in this database has a root cause {key[:40]!r}", hint=hint)


def _cluster(db: Connection, row: SweepRow, key: str) -> frozenset[str] | None:
    settled = standings(db, row)
    for cluster in causes(db, row, settled):
        if cluster.cause.key == key:
            groups = [group for group, by in settled.standing_by.items() if by in cluster.workloads]
            return queries.entry_names(db, row.plan_id, groups)
    return None


def _fails(state: EntryState) -> bool:
    missed = state.missed
    return missed is not None and missed.standing is Standing.FAIL and missed.rung is not Rung.ELIGIBLE
