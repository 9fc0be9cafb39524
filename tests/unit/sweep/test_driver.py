"""The driver with a scripted fleet and a real database: every case once, whatever happens to workers and people."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import Engine, select

from neuronqa.db import planning, queries
from neuronqa.db import tables as t
from neuronqa.db.engine import open_engine
from neuronqa.db.store import Store
from neuronqa.domain.case import AttemptKind, Case
from neuronqa.domain.job import AttemptResult, Job, JobResult
from neuronqa.domain.outcome import Check, Kind, Rung
from neuronqa.domain.workload import Workload
from neuronqa.sweep import driver as driver_module
from neuronqa.sweep.controls import Control, assignments, verdict, withheld
from neuronqa.sweep.driver import Deal, Driver, Progress
from neuronqa.sweep.fleet import Completion
from neuronqa.sweep.schedule import VOIDS, Assignment, Queue
from tests.builders import (
    COMPILED,
    EAGER,
    LEFT,
    ORDER,
    QUICK,
    eligible,
    entries,
    failed,
    job,
    open_sweep,
    passed,
    result,
    said,
    save_plan,
    workload,
)
from tests.scripted import Clock, Quiet, Script, ScriptedFleet, all_pass

VARIANTS = (EAGER, COMPILED)
POOL = [workload(f"w{n}") for n in range(8)]


class Sweep:
    """A planned sweep with one database, a driver and a fleet to play with."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.store = Store(engine)
        plan_id = save_plan(self.store, POOL, entries([(eligible(w), 2, 5) for w in POOL]))
        self.id = open_sweep(self.store, plan_id)
        self.store.plan_cases(
            self.id, [Case(workload=w.hash, device="neuron", variant=v) for w in POOL for v in VARIANTS]
        )
        self.display = Quiet()

    def main(self, pool: list[Workload] = POOL, expected_s: float = 10.0) -> list[Assignment]:
        """Jobs so long that each is handed out by itself."""
        return [
            Assignment(job=made, kinds={t.id: AttemptKind.RECORD for t in made.tickets}, expected_s=expected_s)
            for made in (job(w, VARIANTS) for w in pool)
        ]

    def driver(
        self, fleet: ScriptedFleet, key: dict[str, Control] | None = None, max_failures: int | None = None
    ) -> Driver:
        deal = Deal(sweep_id=self.id, device="neuron", key=key or {}, max_failures=max_failures)
        return Driver(fleet, self.store, deal, Progress(planned=len(POOL) * len(VARIANTS)), self.display)

    def attempts(self) -> Counter[tuple[str, str, str]]:
        """(family, variant, kind) of every attempt in the database."""
        query = (
            select(t.workload.c.family, t.case.c.variant, t.attempt.c.kind)
            .join(t.case, t.case.c.id == t.attempt.c.case_id)
            .join(t.workload, t.workload.c.id == t.case.c.workload_id)
        )
        with self.engine.connect() as db:
            return Counter((family, variant, kind) for family, variant, kind in db.execute(query))

    def outcomes(self, of: Workload) -> set[str]:
        with self.engine.connect() as db:
            return {str(o) for o in queries.findings(db, self.id).get(of.hash, {}).values()}

    def left(self) -> list[str]:
        with self.engine.connect() as db:
            return [f"{one.workload} {one.variant}" for one in planning.outstanding(db, self.id)]


@pytest.fixture
def sweep(tmp_path: Path) -> Iterator[Sweep]:
    engine = open_engine(str(tmp_path / "sweep.db"), create=True)
    yield Sweep(engine)
    engine.dispose()


EVERY_CASE_ONCE = Counter({(w.spec.family, str(v), "record"): 1 for w in POOL for v in VARIANTS})


def loses(*names: str, times: int = 99) -> Script:
    def script(made: Job, before: int) -> JobResult | str:
        if made.workload.spec.family in names and before < times:
            return "ActorDiedError"
        return result(made)

    return script


def lasts(seconds: float) -> Script:
    """All pass, and every job takes so long by its own account: one reference and two attempts."""

    def script(made: Job, _before: int) -> JobResult | str:
        full = result(made)
        exit_ = replace(LEFT, wall_s=seconds / 3)
        return replace(
            full,
            references=tuple(replace(one, exit=exit_) for one in full.references),
            attempts=tuple(replace(one, exit=exit_) for one in full.attempts),
        )

    return script


def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(driver_module, "time", SimpleNamespace(monotonic=clock))
    return clock


def test_every_case_is_executed_once(sweep: Sweep) -> None:
    fleet = ScriptedFleet()
    driver = sweep.driver(fleet)
    driver.run(Queue(sweep.main(), (), 1), None)
    assert sweep.attempts() == EVERY_CASE_ONCE
    assert sweep.left() == []
    assert driver.progress.done == driver.progress.planned == len(POOL) * len(VARIANTS)
    assert not driver.stopped


def test_the_fleet_is_kept_full_and_never_overfilled(sweep: Sweep) -> None:
    fleet = ScriptedFleet(workers=3, window=2)
    sweep.driver(fleet).run(Queue(sweep.main(), (), 1), None)
    assert max(fleet.in_hand) == 6


def test_a_lost_job_is_run_again_with_the_same_tickets(sweep: Sweep) -> None:
    fleet = ScriptedFleet(loses("w3", times=1))
    driver = sweep.driver(fleet)
    driver.run(Queue(sweep.main(), (), 1), None)
    assert sweep.attempts() == EVERY_CASE_ONCE
    taken = [made for made in fleet.submitted if made.workload == POOL[3]]
    assert len(taken) == 2
    assert taken[0] == taken[1]
    assert driver.progress.lost == 1


def test_after_two_voids_a_job_is_tried_ticket_by_ticket_and_is_then_lost_for_good(sweep: Sweep) -> None:
    fleet = ScriptedFleet(loses("w3"))
    driver = sweep.driver(fleet)
    driver.run(Queue(sweep.main(), (), 1), None)
    tries = [len(made.tickets) for made in fleet.submitted if made.workload == POOL[3]]
    assert tries == [2] * VOIDS + [1, 1]
    assert sweep.outcomes(POOL[3]) == {"infra:lost(ActorDiedError)"}
    assert sweep.attempts() == EVERY_CASE_ONCE
    assert sweep.left() == []
    assert driver.progress.done == driver.progress.planned


def test_only_the_case_that_ends_workers_is_lost(sweep: Sweep) -> None:
    """Which of a job's cases it was is not known until each is run by itself."""

    def script(made: Job, _before: int) -> JobResult | str:
        kills = made.workload == POOL[3] and any(ticket.variant == COMPILED for ticket in made.tickets)
        return "ActorDiedError" if kills else result(made)

    sweep.driver(ScriptedFleet(script)).run(Queue(sweep.main(), (), 1), None)
    with sweep.engine.connect() as db:
        found = queries.findings(db, sweep.id)[POOL[3].hash]
    assert {variant for (variant, _), outcome in found.items() if outcome.kind is Kind.INFRA_LOST} == {COMPILED}
    assert sweep.attempts() == EVERY_CASE_ONCE


def test_a_batch_is_lost_whole_and_each_of_its_jobs_is_run_again_by_itself(sweep: Sweep) -> None:
    fleet = ScriptedFleet(loses("w3", times=1), workers=1, window=1)
    portions: list[int] = []
    submit = fleet.submit

    def count(token: int, jobs: Sequence[Job]) -> None:
        portions.append(len(jobs))
        submit(token, jobs)

    fleet.submit = count  # type: ignore[method-assign]
    driver = sweep.driver(fleet)
    driver.run(Queue(sweep.main(expected_s=0.125), (), 1), None)
    assert portions[0] == 4
    assert portions[1:5] == [1, 1, 1, 1]
    assert driver.progress.lost == 4
    assert sweep.attempts() == EVERY_CASE_ONCE


def test_a_job_that_its_worker_gave_up_costs_the_rest_of_its_batch_nothing(sweep: Sweep) -> None:
    def script(made: Job, before: int) -> JobResult | str:
        if made.workload == POOL[1] and not before:
            return JobResult(workload=made.workload.hash, lost="a reference was changed")
        return result(made)

    driver = sweep.driver(ScriptedFleet(script, workers=1, window=1))
    driver.run(Queue(sweep.main(expected_s=0.1), (), 1), None)
    assert driver.progress.lost == 1
    assert sweep.attempts() == EVERY_CASE_ONCE


def test_a_job_that_kills_its_worker_takes_no_neighbour_with_it(sweep: Sweep) -> None:
    """One worker with two batches in hand: what is lost with the killer is run again, and at the end alone."""
    killer = POOL[0].spec.family
    company: list[int] = []

    class OneWorker(ScriptedFleet):
        def wait(self, timeout: float) -> Sequence[Completion]:
            done = super().wait(timeout)
            if not done or done[0].results is not None:
                return done
            company.append(len(self._queue))
            neighbours = [replace(done[0], token=token) for token, _ in self._queue]
            self._queue.clear()
            return [*done, *neighbours]

    sweep.driver(OneWorker(loses(killer), workers=1)).run(Queue(sweep.main(), (), 1), None)
    assert sweep.outcomes(POOL[0]) == {"infra:lost(ActorDiedError)"}
    for innocent in POOL[1:]:
        assert not any(outcome.startswith("infra") for outcome in sweep.outcomes(innocent))
    assert company[-2:] == [0, 0]
    assert sweep.attempts() == EVERY_CASE_ONCE


def test_nothing_starts_that_would_not_end_in_time_and_the_rest_is_not_run(
    sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = stopped_clock(monkeypatch)
    fleet = ScriptedFleet(lasts(10.0), workers=1, window=1)

    def pass_ten_seconds() -> None:
        clock.now += 10.0

    fleet.on_wait = pass_ten_seconds
    driver = sweep.driver(fleet)
    driver.run(Queue(sweep.main(expected_s=10.0), (), 1), deadline=clock.now + 35.0)
    assert len(fleet.submitted) == 3
    assert len(sweep.left()) == (len(POOL) - 3) * len(VARIANTS)
    assert clock.now <= 1035.0
    assert sweep.display.last is not None
    assert sweep.display.last.draining == "budget"


def test_what_jobs_really_take_decides_how_many_are_started(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    """Expected are 10 s each, and 80 s are left for eight; but each takes 40 s."""
    clock = stopped_clock(monkeypatch)
    fleet = ScriptedFleet(lasts(40.0), workers=1, window=1)

    def pass_forty_seconds() -> None:
        clock.now += 40.0

    fleet.on_wait = pass_forty_seconds
    sweep.driver(fleet).run(Queue(sweep.main(), (), 1), deadline=clock.now + 80.0)
    assert len(fleet.submitted) == 2


def test_what_runs_far_over_the_budget_is_dropped_and_not_run(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = stopped_clock(monkeypatch)

    class Stuck(ScriptedFleet):
        def wait(self, timeout: float) -> Sequence[Completion]:
            clock.now += max(1.0, timeout)
            return []

    sweep.driver(Stuck()).run(Queue(sweep.main(), (), 1), deadline=clock.now + 5.0)
    assert clock.now <= 1000.0 + 5.0 + driver_module.GRACE_S + 2.0
    assert len(sweep.left()) == len(POOL) * len(VARIANTS)
    assert sweep.attempts() == Counter()


def test_a_completion_of_a_dropped_job_is_not_taken(sweep: Sweep, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = stopped_clock(monkeypatch)

    class Late(ScriptedFleet):
        late = False

        def wait(self, timeout: float) -> Sequence[Completion]:
            clock.now += 1.0
            return super().wait(timeout) if self.late else []

    fleet = Late(workers=2, window=1)
    driver = sweep.driver(fleet)
    driver.run(Queue(sweep.main(POOL[:1]), (), 1), deadline=clock.now + 2.0)
    fleet.late = True
    driver.run(Queue(sweep.main(POOL[1:2]), (), 1), None)
    assert {family for family, _, _ in sweep.attempts()} == {"w1"}


def test_a_stop_hands_out_nothing_more_and_keeps_what_is_in_flight(sweep: Sweep) -> None:
    fleet = ScriptedFleet(workers=2, window=1)
    driver = sweep.driver(fleet)
    fleet.on_wait = lambda: driver.stop("interrupted")
    driver.run(Queue(sweep.main(), (), 1), None)
    assert driver.stopped == "interrupted"
    assert len(fleet.submitted) == 2
    assert sum(sweep.attempts().values()) == 2 * len(VARIANTS)
    assert len(sweep.left()) == (len(POOL) - 2) * len(VARIANTS)


def test_an_exception_in_the_fleet_loses_nothing_that_came_back(sweep: Sweep) -> None:
    fleet = ScriptedFleet()
    waits = iter(range(99))

    def break_down() -> None:
        if next(waits) == 3:
            raise KeyboardInterrupt

    fleet.on_wait = break_down
    with pytest.raises(KeyboardInterrupt):
        sweep.driver(fleet).run(Queue(sweep.main(), (), 1), None)
    assert sum(sweep.attempts().values()) == 3 * len(VARIANTS)


def test_it_stops_after_so_many_failing_workloads(sweep: Sweep) -> None:
    def script(made: Job, _before: int) -> JobResult | str:
        return result(made, {EAGER: failed(EAGER, Check.RUN, Kind.RUN_CRASH, "SIGSEGV")})

    fleet = ScriptedFleet(script, workers=1, window=1)
    driver = sweep.driver(fleet, max_failures=3)
    driver.run(Queue(sweep.main(), (), 1), None)
    assert driver.stopped == "max-failures"
    assert len(fleet.submitted) == 3
    assert driver.progress.failures == Counter({"run": 3})


HOST = workload("host")
CATCH = Control(
    name="planted",
    workload=HOST,
    variant=EAGER,
    fault={"kind": "scale"},
    guards=Check.PARITY,
    expected=("parity:scale",),
)


def judged(sweep: Sweep, script: Script) -> tuple[dict[str, bool], dict[Rung, str], Driver]:
    sweep.store.save_workloads([HOST])
    extras, key = assignments([CATCH], QUICK, ORDER, 1, lambda: "c" * 32)
    driver = sweep.driver(ScriptedFleet(script), key)
    driver.run(Queue(sweep.main(), extras, 3), None)
    with sweep.engine.connect() as db:
        rows = queries.controls(db, sweep.id)
    verdicts = [verdict(row) for row in rows]
    return {v.name: v.caught for v in verdicts}, withheld([CATCH], verdicts), driver


def test_a_control_is_judged_by_its_key_and_never_counts(sweep: Sweep) -> None:
    def script(made: Job, _before: int) -> JobResult | str:
        if made.tickets[0].order.fault:
            return result(made, {EAGER: failed(EAGER, Check.PARITY, Kind.PARITY_SCALE)})
        return result(made)

    caught, reasons, driver = judged(sweep, script)
    assert caught == {"planted": True}
    assert reasons == {}
    assert driver.progress.done == driver.progress.planned == len(POOL) * len(VARIANTS)
    assert driver.progress.failures == Counter()
    assert driver.progress.control_misses == 0
    assert sweep.attempts() == EVERY_CASE_ONCE + Counter({("host", "eager/fp32/train", "control"): 1})
    assert sweep.outcomes(HOST) == set()


def test_a_missed_control_withholds(sweep: Sweep) -> None:
    caught, reasons, driver = judged(sweep, all_pass)
    assert caught == {"planted": False}
    assert reasons == {Rung.PARITY: "control planted was judged parity:pass"}
    assert driver.progress.control_misses == 1


def test_a_lost_control_is_judged_a_miss(sweep: Sweep) -> None:
    caught, reasons, _ = judged(sweep, loses("host"))
    assert caught == {"planted": False}
    assert reasons == {Rung.PARITY: "control planted was judged infra:lost(ActorDiedError)"}


def test_a_control_that_never_came_back_withholds(sweep: Sweep) -> None:
    sweep.store.save_workloads([HOST])
    extras, key = assignments([CATCH], QUICK, ORDER, 1, lambda: "c" * 32)
    driver = sweep.driver(ScriptedFleet(), key)
    driver.stop("interrupted")
    driver.run(Queue(sweep.main(), extras, 3), None)
    with sweep.engine.connect() as db:
        assert queries.controls(db, sweep.id) == []
    assert withheld([CATCH], []) == {Rung.PARITY: "control planted was not judged"}


def test_a_probe_of_a_control_is_not_judged(sweep: Sweep) -> None:
    def script(made: Job, _before: int) -> JobResult | str:
        if not made.tickets[0].order.fault:
            return result(made)
        full = result(made, {EAGER: failed(EAGER, Check.PARITY, Kind.PARITY_SCALE)})
        probe = AttemptResult(
            ticket="f" * 32,
            variant=EAGER,
            findings=(said(Check.PARITY, Kind.PARITY_PASS),),
            exit=LEFT,
            probe_of=made.tickets[0].id,
        )
        return replace(full, attempts=(*full.attempts, probe))

    caught, _, _ = judged(sweep, script)
    assert caught == {"planted": True}
    assert sweep.attempts()["host", "eager/fp32/train", "probe"] == 1


def test_audits_are_kept_apart_from_what_counts(sweep: Sweep) -> None:
    main = sweep.main()
    made = main[0]
    audit = replace(made, kinds={t.id: AttemptKind.AUDIT for t in made.job.tickets})
    sweep.driver(ScriptedFleet()).run(Queue((), [audit], 1), None)
    assert sweep.outcomes(POOL[0]) == set()
    with sweep.engine.connect() as db:
        audited = queries.findings(db, sweep.id, [AttemptKind.AUDIT.value])
    assert set(audited) == {POOL[0].hash}
    assert len(sweep.left()) == len(POOL) * len(VARIANTS)


def test_first_failures_are_counted_by_stage_for_the_display(sweep: Sweep) -> None:
    def script(made: Job, _before: int) -> JobResult | str:
        which = int(made.workload.spec.family[1:])
        if which == 0:
            return result(made, {EAGER: failed(EAGER, Check.BUILD, Kind.BUILD_ERROR)})
        if which < 3:
            return result(made, {COMPILED: failed(COMPILED, Check.GRAPH, Kind.GRAPH_BREAK)})
        return result(made, {EAGER: passed(EAGER)})

    driver = sweep.driver(ScriptedFleet(script))
    driver.run(Queue(sweep.main(), (), 1), None)
    assert driver.progress.failures == Counter({"graph": 2, "build": 1})
    assert sweep.display.last is driver.progress
    assert driver.progress.workers == 2
