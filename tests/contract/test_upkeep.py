"""`db check` and `db prune`, on every database: what holds, what is noticed, what goes and what stays."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, delete, func, insert, select, update

from neuronqa.db import planning, queries
from neuronqa.db import tables as t
from neuronqa.db.invariants import check
from neuronqa.db.prune import prune
from neuronqa.db.store import Store
from neuronqa.domain.case import Case
from neuronqa.domain.outcome import Check, Kind
from neuronqa.sweep.standings import partial_standings
from tests.builders import EAGER, eligible, entries, failed, open_sweep, record, save_plan, summary
from tests.builders import workload as named

POOL = [named(f"w{n}") for n in range(3)]


@pytest.fixture
def filled(engine: Engine) -> Engine:
    """Three settled sweeps of one plan; the second took a verdict over from the first."""
    store = Store(engine)
    plan_id = save_plan(store, POOL, entries([(eligible(w), 2, 5) for w in POOL]))
    for number, name in enumerate("abc"):
        sweep_id = open_sweep(store, plan_id, name=name)
        store.plan_cases(sweep_id, [Case(workload=w.hash, device="neuron", variant=EAGER) for w in POOL])
        bad = failed(EAGER, Check.RUN, Kind.RUN_CRASH, evidence={"words": f"in sweep {name}"})
        ran = POOL[number % 2 :]
        store.write(sweep_id, [record(w, EAGER, bad, take=number, record={"sweep": name, "of": w.hash}) for w in ran])
        if name == "b":
            with engine.connect() as db:
                source = db.execute(select(func.min(t.attempt.c.id))).scalar_one()
            store.carry(sweep_id, [source])
        store.finish_sweep(sweep_id, "done", 1.0, summary())
        with engine.connect() as db:
            states = [item for part in partial_standings(db, queries.sweep(db, name)) for item in part.states.items()]
        store.save_standings(sweep_id, states)
    return engine


def broken(engine: Engine) -> list[str]:
    with engine.connect() as db:
        return [one.what for one in check(db) if one.times]


def test_a_database_that_adds_up_has_nothing_broken(filled: Engine) -> None:
    assert broken(filled) == []


@pytest.mark.parametrize(
    ("damage", "noticed"),
    [
        (delete(t.standing).where(t.standing.c.sweep_id == 1), "every entry of a settled sweep has a state"),
        (delete(t.entry).where(t.entry.c.rank == 1), "every registered entry is in its plan"),
        (update(t.plan_group).values(downloads=0), "every group weighs what its entries do"),
        (update(t.attempt).values(case_id=1), "no case counts twice in a sweep"),
        (delete(t.result), "every attempt has results"),
        (delete(t.result), "every blocker is of a check with a result"),
    ],
)
def test_what_does_not_add_up_is_named(filled: Engine, damage: object, noticed: str) -> None:
    with filled.begin() as db:
        db.execute(damage)  # type: ignore[call-overload]
    assert noticed in broken(filled)


def test_pruning_keeps_the_newest_sweeps_whole_and_the_names_of_the_others(filled: Engine) -> None:
    with filled.connect() as db:
        before = queries.findings(db, queries.sweep(db, "b").id)
    gone = prune(filled, keep=2)
    assert (gone.sweeps, gone.attempts) == (1, 3)
    assert gone.blobs == 2, "the third is what the second sweep took over"
    with filled.connect() as db:
        assert [row.state for row in queries.sweeps(db)] == ["done", "done", "pruned"]
        assert queries.findings(db, queries.sweep(db, "b").id) == before
        assert queries.findings(db, queries.sweep(db, "a").id) == {}
        assert planning.left(db, queries.sweep(db, "c").id).cases == 0
    assert broken(filled) == []
    assert prune(filled, keep=2).sweeps == 0


def test_a_sweep_that_runs_is_not_pruned(filled: Engine) -> None:
    with filled.begin() as db:
        db.execute(update(t.sweep).where(t.sweep.c.name == "a").values(state="running"))
    assert prune(filled, keep=1).sweeps == 1
    with filled.connect() as db:
        assert [row.state for row in queries.sweeps(db)] == ["done", "pruned", "running"]


def test_reading_a_plan_in_parts_leaves_its_connection_fit_to_write(filled: Engine) -> None:
    """A connection that streams whatever it is asked cannot insert many rows on PostgreSQL."""
    with filled.begin() as db:
        assert len(list(planning.candidates(db, 1))) == len(POOL)
        assert "yield_per" not in db.get_execution_options()
        new = insert(t.workload).returning(t.workload.c.id, sort_by_parameter_order=True)
        rows = [{"hash": f"{n:032x}", "kind": "hf", "family": "x", "class_name": "", "spec": {}} for n in range(3)]
        assert len(db.execute(new, rows).all()) == 3
