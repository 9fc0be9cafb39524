"""Which entries earlier sweeps speak of: what `failed:SWEEP` and `cluster:KEY` select."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection

from neuronqa.catalog.select import Results
from neuronqa.db import clusters, queries
from neuronqa.db.engine import open_engine
from neuronqa.domain.ladder import EntryState
from neuronqa.domain.outcome import Rung, Standing
from neuronqa.sweep.standings import partial_standings


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


def in_cluster(db: Connection, named: str) -> frozenset[str]:
    """Ids of the entries in whose verdict a cluster (by its id or a cause key it holds) stands, in the newest sweep
    that saw it. Raises BadInput when there is no such cluster."""
    found = clusters.cluster(db, named)
    plan_id = queries.plan_of(db, found.seen_sweep_id)
    return queries.entry_names(db, plan_id, clusters.blocked_groups(db, found.seen_sweep_id, found.id))


def _fails(state: EntryState) -> bool:
    missed = state.missed
    return missed is not None and missed.standing is Standing.FAIL and missed.rung is not Rung.ELIGIBLE
