"""What a concluded sweep leaves for the pages, on every database: sums that agree with the report's own."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from sqlalchemy import Engine, func, select

from neuronqa.db import queries
from neuronqa.db import tables as t
from neuronqa.db import tally_tables as tt
from neuronqa.db.browse import ladder
from neuronqa.db.store import Store
from neuronqa.domain.case import AttemptKind
from neuronqa.domain.catalog import ListingStatus
from neuronqa.domain.ladder import Weight
from neuronqa.domain.observation import OpUse, Placement
from neuronqa.domain.outcome import Check, Kind, Rung
from neuronqa.domain.plan import PlanGroup
from neuronqa.report.build import build
from neuronqa.sweep.conclude import conclude
from tests.builders import COMPILED, EAGER, eligible, entries, failed, open_sweep, record, save_plan, summary, workload

A, B, C = (workload(name) for name in "abc")
NATIVE = OpUse(op="aten::mm", dtype="float32", placement=Placement.NATIVE, count=4, ns=40, shapes=((2, 3), (3, 2)))
FELL = OpUse(
    op="aten::cumsum", dtype="float32", placement=Placement.CPU, mechanism=1, nbytes=64, ns=60, shapes=((4, 4),)
)


@pytest.fixture
def concluded(engine: Engine) -> Engine:
    """A runs and inherits to B; C falls back; one entry is gated. The compiled lane of C was not run."""
    store = Store(engine)
    gated = PlanGroup(listing=ListingStatus.GATED.outcome("404"))
    listed = [(eligible(A, "k"), 3, 7), (eligible(B, "k"), 2, 100), (eligible(C, "c"), 4, 1), (gated, 1, 5)]
    sweep_id = open_sweep(store, save_plan(store, [A, B, C], entries(listed)))
    fell = failed(EAGER, Check.FALLBACK, Kind.FALLBACK_NO_KERNEL, "aten::cumsum")
    ops = {"ops": [asdict(NATIVE), asdict(FELL)]}
    store.write(
        sweep_id,
        [
            record(A, EAGER, record={"ops": [asdict(NATIVE)]}),
            record(A, COMPILED),
            record(C, EAGER, fell, record=ops),
            record(C, EAGER, kind=AttemptKind.AUDIT, record=ops),
        ],
    )
    store.finish_sweep(sweep_id, "done", 1.0, summary(planned=2, audit={"drawn": 9, "disagreed": 0, "bound": 0.5}))
    conclude(store, "one")
    return engine


@pytest.mark.parametrize("weight", Weight)
def test_the_ladder_read_from_the_tallies_is_the_reports(concluded: Engine, weight: Weight) -> None:
    with concluded.connect() as db:
        row, report = queries.sweep(db), build(db)
        whole, *of_variants = ladder.lanes(db, row, weight)
        states = ladder.states(db, row.id)
    assert whole.gates == (report.gates if weight is Weight.ENTRIES else report.download_gates)
    assert {lane.name for lane in of_variants} == {str(EAGER), str(COMPILED)}
    assert {state.label: state.entries for state in states} == dict(report.states)
    for lane in of_variants:
        assert {gate.registered for gate in lane.gates} == {gate.registered for gate in whole.gates}


def test_a_lane_knows_nothing_of_what_another_variant_lacks(concluded: Engine) -> None:
    with concluded.connect() as db:
        lanes = {lane.name: {gate.rung: gate for gate in lane.gates} for lane in ladder.lanes(db, queries.sweep(db))}
    assert Rung.FULL_GRAPH not in lanes[str(EAGER)]
    eager, compiled = lanes[str(EAGER)][Rung.NATIVE], lanes[str(COMPILED)][Rung.NATIVE]
    assert (compiled.passed, compiled.failed, compiled.not_run) == (5, 1, 4)
    assert (eager.passed, eager.failed, eager.not_run) == (5, 5, 0)


def test_concluding_again_changes_nothing(concluded: Engine) -> None:
    def kept() -> list[list[tuple[object, ...]]]:
        tables = (tt.rung_tally, tt.state_tally, tt.failure_tally, tt.op_tally, tt.op_need, tt.op_sample, t.standing)
        with concluded.connect() as db:
            return [sorted(tuple(map(str, row)) for row in db.execute(select(table))) for table in tables]

    before = kept()
    conclude(Store(concluded), "one")
    assert kept() == before
    assert all(before)


def test_operators_are_counted_over_the_attempts_that_count_and_weighed_by_the_entries_behind(
    concluded: Engine,
) -> None:
    with concluded.connect() as db:
        uses = {(row.op, row.mechanism): row for row in db.execute(select(tt.op_tally))}
        needs = db.execute(select(tt.op_need.c.op, tt.op_need.c.calls, tt.op_need.c.entries)).all()
        sample = db.execute(select(tt.op_sample)).one()
    assert uses["aten::mm", 0].calls == 8
    assert uses["aten::mm", 0].entries == 3 + 2 + 4
    assert (uses["aten::cumsum", 1].workloads, uses["aten::cumsum", 1].ns) == (1, 60)
    assert [tuple(row) for row in needs] == [("aten::cumsum", 1, 4)]
    assert (sample.op, sample.dtype, sample.phase, sample.shapes) == ("aten::cumsum", "float32", "train", [[4, 4]])


def test_what_a_failing_check_says_can_be_searched_and_what_a_passing_one_says_cannot(concluded: Engine) -> None:
    with concluded.connect() as db:
        texts = db.execute(select(tt.message.c.check, tt.message.c.text)).all()
        failures = db.execute(select(func.sum(tt.failure_tally.c.failures))).scalar_one()
        blockers = db.execute(select(func.count()).select_from(t.blocker)).scalar_one()
    assert [tuple(row) for row in texts] == [("fallback", "fallback said fallback:no-kernel")]
    assert failures == blockers == 1
