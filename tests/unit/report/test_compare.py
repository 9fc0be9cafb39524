"""Two sweeps beside each other: every entry in one line, and both sums hold."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from sqlalchemy import Engine

from neuronqa.db.store import Store
from neuronqa.domain.change import Change, Line, change
from neuronqa.domain.outcome import Check, Kind, Standing
from neuronqa.errors import BadInput, InvariantBroken
from neuronqa.report import export
from neuronqa.report.build import build
from neuronqa.report.compare import Side, compare
from neuronqa.report.decide import decide
from neuronqa.report.verdict import Answer
from tests.builders import EAGER, but, eligible, entries, failed, passed, said, save_plan, workload
from tests.triaged import both, sweep

P, F, N = Standing.PASS, Standing.FAIL, Standing.NOT_RUN


def line(standing: Standing, rung: str = "", *causes: str) -> Line:
    return Line(standing=standing, rung=rung, causes=frozenset(causes))


TABLE = [
    (line(P), line(P), Change.GREEN),
    (line(P), line(F, "runs", "x"), Change.REGRESSED),
    (line(F, "runs", "x"), line(P), Change.FIXED),
    (line(F, "runs", "x"), line(F, "runs", "x"), Change.FAILING),
    (line(F, "runs", "x"), line(F, "runs", "y"), Change.SHIFTED),
    (line(F, "runs", "x"), line(F, "parity", "y"), Change.SHIFTED),
    (line(F, "parity", "x"), line(F, "runs", "y"), Change.MASKED),
    (line(F, "parity", "x"), line(F, "runs", "x", "y"), Change.SHIFTED),
    (line(N), line(P), Change.NEWLY_RUN),
    (line(N), line(F, "runs", "x"), Change.NEWLY_RUN),
    (line(P), line(N), Change.NOT_RUN),
    (line(F, "runs", "x"), line(N), Change.NOT_RUN),
    (line(N), line(N), Change.UNKNOWN),
    (None, line(P), Change.ADDED),
    (line(P), None, Change.GONE),
]


@pytest.mark.parametrize(("before", "after", "expected"), TABLE)
def test_what_became_of_an_entry(before: Line | None, after: Line | None, expected: Change) -> None:
    assert change(before, after) is expected


def test_every_pair_of_lines_has_a_change() -> None:
    lines = [
        line(P),
        line(N),
        *(line(F, rung, *causes) for rung in ("runs", "parity") for causes in ((), ("x",), ("y",))),
    ]
    for before, after in product([None, *lines], repeat=2):
        assert change(before, after) in Change


def test_a_side_that_does_not_add_up_is_not_compared() -> None:
    whole = Side(name="a", build="", registered=1, entries={"x": line(P)})
    short = Side(name="b", build="", registered=2, entries={"x": line(P)})
    with pytest.raises(InvariantBroken, match="b, registered are 2"):
        compare(whole, short)


POOL = [workload(f"w{n}") for n in range(6)]
MM = but(passed(EAGER), said(Check.PARITY, Kind.PARITY_SCALE, "aten::mm float32"))
CRASH = failed(EAGER, Check.RUN, Kind.RUN_CRASH, "SIGSEGV aten::mm")


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    from neuronqa.db.engine import open_engine

    return open_engine(str(tmp_path / "compare.db"), create=True)


@pytest.fixture
def plan(engine: Engine) -> int:
    return save_plan(Store(engine), POOL, entries([(eligible(of), n + 1, 10) for n, of in enumerate(POOL)]))


def test_two_sweeps_of_one_build_in_another_order_have_nothing_regressed_and_nothing_fixed(
    engine: Engine, plan: int
) -> None:
    records = [*both(POOL[0], MM), *both(POOL[1], CRASH), *(one for of in POOL[2:] for one in both(of))]
    sweep(engine, plan, "one", records)
    sweep(engine, plan, "two", records[::-1])
    with engine.connect() as db:
        found = compare(export.side(db, "one"), export.side(db, "two"))
    assert found.counts == {Change.FAILING: 3, Change.GREEN: 18}


def test_a_regression_planted_in_some_workloads_is_named_exactly_and_stops_a_build(engine: Engine, plan: int) -> None:
    good = [one for of in POOL for one in both(of)]
    sweep(engine, plan, "one", good)
    sweep(
        engine,
        plan,
        "two",
        [*both(POOL[1], MM), *both(POOL[4], MM), *(good[i] for i in (0, 1, 4, 5, 6, 7, 10, 11))],
        "q",
    )
    with engine.connect() as db:
        found = compare(export.side(db, "one"), export.side(db, "two"))
        verdict = decide(db, build(db, "two"), "green>=10%", "one")
        back = decide(db, build(db, "one"), "green>=100%", "two")
    regressed = {one.name for one in found.of(Change.REGRESSED)}
    assert regressed == {f"synthetic/model-{rank}" for rank in (2, 3, 11, 12, 13, 14, 15)}
    assert found.to_json()["causes"]["regressed"][0]["entries"] == 7
    assert verdict.answer is Answer.DO_NOT_SHIP
    assert "7 entries regressed against one" in verdict.reasons[1]
    assert back.answer is Answer.SHIP


def test_what_was_not_run_ships_nothing_and_names_the_cheapest_runs_that_would_decide(
    engine: Engine, plan: int
) -> None:
    store = Store(engine)
    good = [one for of in POOL for one in both(of)]
    sweep(engine, plan, "one", good)
    sweep_id = sweep(engine, plan, "two", good[:4], "q")
    store.plan_cases(sweep_id, [one.case for one in good])
    with engine.connect() as db:
        verdict = decide(db, build(db, "two"), "green>=40%", "one")
    assert verdict.answer is Answer.CANNOT_TELL
    assert "18 entries known in one were not run" in verdict.reasons[1]
    assert verdict.runs[0].command == "neuronqa sweep --resume two"
    assert "1 more workloads stand for 6 entries" in verdict.runs[0].why


def test_a_sweep_that_was_not_triaged_is_not_compared(engine: Engine, plan: int) -> None:
    from tests.builders import open_sweep

    open_sweep(Store(engine), plan, name="raw")
    with pytest.raises(BadInput, match="not been triaged"), engine.connect() as db:
        export.side(db, "raw")
