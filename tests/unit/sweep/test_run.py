"""A sweep from its plan to its summary, with a scripted fleet: what runs, what is audited, what is withheld."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, select

from neuronqa.db import planning, queries
from neuronqa.db import tables as t
from neuronqa.db.engine import open_engine
from neuronqa.db.queries import SweepRow
from neuronqa.db.rows import AttemptRecord
from neuronqa.db.store import Store
from neuronqa.domain.build import BuildOrder, Prepared
from neuronqa.domain.case import Case, Dtype, Mode
from neuronqa.domain.finding import Finding
from neuronqa.domain.job import Job, JobResult
from neuronqa.domain.ladder import Evidence
from neuronqa.domain.outcome import Check, Kind
from neuronqa.domain.plan import PlanGroup
from neuronqa.domain.policy import Policy
from neuronqa.errors import BadInput, EnvironmentFault
from neuronqa.sweep import controls
from neuronqa.sweep import run as run_module
from neuronqa.sweep.controls import Control
from neuronqa.sweep.fleet import Fleet
from neuronqa.sweep.request import SweepRequest
from neuronqa.sweep.run import Swept, resume_sweep
from neuronqa.sweep.standings import Standings, standings
from tests.builders import (
    COMPILED,
    EAGER,
    QUICK,
    eligible,
    entries,
    failed,
    open_sweep,
    passed,
    record,
    result,
    save_plan,
    vector,
    workload,
)
from tests.scripted import Quiet, Script, ScriptedFleet, all_pass

A, B, C, D = (workload(name) for name in "abcd")
KEYED: list[tuple[PlanGroup, int, int]] = [
    (eligible(A, "k1"), 5, 10),
    (eligible(B, "k1"), 3, 1),
    (eligible(C, "k1"), 2, 1),
    (eligible(D, "k2"), 4, 1),
]
PLANTED = Control(
    name="planted",
    workload=workload("host"),
    variant=EAGER,
    fault={"kind": "scale"},
    guards=Check.PARITY,
    expected=("parity:scale",),
)


class Place:
    """A database with one sweep whose device is ready, and everything a leg needs but workers."""

    def __init__(self, path: Path, *, policed: Policy = QUICK, most_ranks: int = 8, **asked: Any) -> None:
        self.path = path
        self._most_ranks = most_ranks
        self.engine: Engine = open_engine(str(path), create=True)
        store = Store(self.engine)
        plan_id = save_plan(store, [A, B, C, D], entries(KEYED))
        request = SweepRequest(catalog="little", policy="quick", workers=2, **asked)
        sweep_id = open_sweep(store, plan_id, policed, **asdict(request))
        kept = [v for v in policed.variants if request.narrowing.keeps(v.mode, v.dtype)]
        run = [A, D][: request.limit]
        store.plan_cases(sweep_id, [Case(workload=w.hash, device="neuron", variant=v) for w in run for v in kept])
        self.fleet = ScriptedFleet()

    def leg(self, script: Script = all_pass, on_wait: Callable[[], None] = lambda: None) -> Swept:
        @contextmanager
        def make(_request: SweepRequest, _prepared: Prepared) -> Iterator[Fleet]:
            self.fleet = ScriptedFleet(script)
            self.fleet.most_ranks = self._most_ranks
            self.fleet.on_wait = on_wait
            yield self.fleet

        return resume_sweep("one", str(self.path), None, Quiet(), make)

    @property
    def row(self) -> SweepRow:
        with self.engine.connect() as db:
            return queries.sweep(db, "one")

    @property
    def summary(self) -> dict[str, Any]:
        summary = self.row.summary
        assert summary is not None
        return dict(summary)

    @property
    def settled(self) -> Standings:
        with self.engine.connect() as db:
            return standings(db, self.row)

    @property
    def labels(self) -> dict[str, int]:
        with self.engine.connect() as db:
            return queries.reconciliation(db, self.row.id, self.row.plan_id)

    def remember(self, attempts: Sequence[AttemptRecord]) -> None:
        """Another sweep did these, so that costs are known."""
        store = Store(self.engine)
        store.write(open_sweep(store, self.row.plan_id, name="earlier"), attempts)

    def attempts(self) -> Counter[tuple[str, str]]:
        query = (
            select(t.workload.c.family, t.attempt.c.kind)
            .join(t.case, t.case.c.id == t.attempt.c.case_id)
            .join(t.workload, t.workload.c.id == t.case.c.workload_id)
            .where(t.attempt.c.sweep_id == self.row.id)
        )
        with self.engine.connect() as db:
            return Counter((family, kind) for family, kind in db.execute(query))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Place]]:
    made: list[Place] = []

    def ready(order: BuildOrder) -> Prepared:
        return Prepared(order=order, vector=vector(), seconds=0.0)

    monkeypatch.setattr(run_module, "prepare", ready)
    monkeypatch.setattr(controls, "load_controls", lambda *_: [])

    def make(**asked: Any) -> Place:
        made.append(Place(tmp_path / f"{len(made)}.db", **asked))
        return made[-1]

    yield make
    for one in made:
        one.engine.dispose()


def costly(found: Callable[[Job], dict[Any, Sequence[Finding]]] = lambda _: {}, cpu_s: float = 1000.0) -> Script:
    """Results of cases that took long, so that an audit may take its share."""

    def script(job: Job, _before: int) -> JobResult | str:
        made = result(job, found(job))
        return replace(made, attempts=tuple(replace(a, exit=replace(a.exit, cpu_s=cpu_s)) for a in made.attempts))

    return script


def test_representatives_run_the_rest_inherits_and_everything_is_settled(place: Callable[..., Place]) -> None:
    one = place()
    assert one.leg() == Swept(name="one", state="done")
    records = Counter({("a", "record"): 2, ("d", "record"): 2})
    assert one.attempts() - records in [Counter({(name, "audit"): 2}) for name in "bc"], "one audit, however little ran"
    assert one.labels == {"green": 14}
    by_evidence = Counter[Evidence]()
    for group in one.settled.groups:
        by_evidence[one.settled.states[group.id].evidence] += group.entries
    assert by_evidence == Counter({Evidence.EXECUTED: 9, Evidence.INHERITED: 5})
    assert one.settled.inherited_workloads == 2
    assert set(one.settled.standing_by.values()) == {A.hash, D.hash}
    assert one.summary["planned"] == 2
    assert one.summary["audit"] == {"drawn": 1, "disagreed": 0, "bound": pytest.approx(0.95)}


def test_inherited_workloads_are_audited_within_the_share_of_cpu_time(place: Callable[..., Place]) -> None:
    one = place()
    one.leg(costly())
    assert one.attempts() == Counter({("a", "record"): 2, ("d", "record"): 2, ("b", "audit"): 2, ("c", "audit"): 2})
    assert one.summary["audit"]["drawn"] == 2
    assert one.summary["audit"]["disagreed"] == 0
    assert one.summary["audit"]["bound"] == pytest.approx(1 - 0.05 ** (1 / 2))
    # What an audit finds never decides a rung.
    assert one.settled.inherited_workloads == 2


def test_an_audit_that_finds_otherwise_is_a_disagreement(place: Callable[..., Place]) -> None:
    one = place()

    def wrong(job: Job) -> dict[Any, Sequence[Finding]]:
        return {EAGER: failed(EAGER, Check.PARITY, Kind.PARITY_NAN)} if job.workload == B else {}

    one.leg(costly(wrong))
    assert (one.summary["audit"]["drawn"], one.summary["audit"]["disagreed"]) == (2, 1)
    assert one.labels == {"green": 14}


def test_a_resumed_sweep_audits_what_it_may_and_nothing_twice(place: Callable[..., Place]) -> None:
    one = place()
    one.remember([record(of, v, cpu_s=0.5) for of in (B, C) for v in (EAGER, COMPILED)])
    jobs = iter(range(99))

    def stop_before_the_audit() -> None:
        if next(jobs) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        one.leg(costly(), stop_before_the_audit)
    assert one.row.summary is None
    assert one.attempts() == Counter({("a", "record"): 2, ("d", "record"): 2})
    one.leg(costly())
    assert one.summary["audit"]["drawn"] == 2
    before = one.attempts()
    one.leg(costly())
    assert one.attempts() == before
    assert one.summary["audit"]["drawn"] == 2


def test_no_audit_is_begun_that_the_share_does_not_cover(place: Callable[..., Place]) -> None:
    one = place()
    one.leg(costly(cpu_s=40.0))
    # 4 cases of 40 s and 2 references: 5 % is 8 s, and one audit of two cases is expected to take 6.6 s.
    assert sum(n for (_, kind), n in one.attempts().items() if kind == "audit") == 2
    assert one.summary["audit"]["drawn"] == 1


def test_limit_leaves_the_rest_not_run_and_says_why(place: Callable[..., Place]) -> None:
    one = place(limit=1)
    one.leg()
    assert one.summary["planned"] == 1
    assert one.labels == {"green": 10, "builds not-run:limit": 4}


def test_a_budget_leaves_the_rest_not_run_and_says_why(place: Callable[..., Place]) -> None:
    one = place(budget_s=0.001)
    one.leg()
    assert one.attempts() == Counter()
    assert one.row.state == "done"
    assert one.labels == {"builds not-run:budget": 14}


def test_a_narrowed_sweep_runs_only_what_was_named(place: Callable[..., Place]) -> None:
    one = place(mode=Mode.EAGER, dtype=Dtype.FP32)
    one.leg()
    assert {ticket.variant for job in one.fleet.submitted for ticket in job.tickets} == {EAGER}
    assert one.labels == {"builds not-run:narrowed": 14}


def test_an_interrupted_leg_says_so_and_audits_nothing(place: Callable[..., Place]) -> None:
    one = place()
    sent = iter(range(99))

    def interrupt() -> None:
        if next(sent) == 0:
            os.kill(os.getpid(), signal.SIGINT)

    handler = signal.getsignal(signal.SIGINT)
    assert one.leg(costly(), interrupt).state == "interrupted"
    assert signal.getsignal(signal.SIGINT) is handler
    assert not [kind for _, kind in one.attempts() if kind == "audit"]
    assert one.summary["audit"]["drawn"] == 0


def test_after_too_many_failures_it_stops_and_is_done(place: Callable[..., Place]) -> None:
    def wrong(_job: Job) -> dict[Any, Sequence[Finding]]:
        return {COMPILED: failed(COMPILED, Check.GRAPH, Kind.GRAPH_BREAK, "GB0001")}

    one = place(max_failures=1)
    one.leg(costly(wrong))
    assert one.row.state == "done"
    assert not [kind for _, kind in one.attempts() if kind == "audit"]


@pytest.mark.parametrize("kind", [Kind.PARITY_SCALE, Kind.PARITY_NAN])
def test_controls_run_once_in_a_sweep_and_withhold_what_they_missed(
    place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch, kind: Kind
) -> None:
    def script(job: Job, _before: int) -> JobResult | str:
        return result(job, {EAGER: failed(EAGER, Check.PARITY, kind)} if job.tickets[0].order.fault else {})

    one = place()
    monkeypatch.setattr(controls, "load_controls", lambda *_: [PLANTED])
    caught = kind is Kind.PARITY_SCALE
    for _ in range(2):
        one.leg(script)
        assert one.attempts()["host", "control"] == 1
        assert one.summary["controls"] == {"planted": 1, "judged": 1, "caught": int(caught)}
        assert one.summary["withheld"] == ({} if caught else {"parity": "control planted was judged parity:nan"})


def test_a_control_never_judged_withholds(place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch) -> None:
    one = place(budget_s=0.001)
    monkeypatch.setattr(controls, "load_controls", lambda *_: [PLANTED])
    one.leg()
    assert one.summary["controls"] == {"planted": 1, "judged": 0, "caught": 0}
    assert one.summary["withheld"] == {"parity": "control planted was not judged"}


def test_results_of_two_builds_are_never_mixed(place: Callable[..., Place], monkeypatch: pytest.MonkeyPatch) -> None:
    one = place()

    def changed(order: BuildOrder) -> Prepared:
        return Prepared(order=order, vector=vector(shim="another"), seconds=0.0)

    monkeypatch.setattr(run_module, "prepare", changed)
    with pytest.raises(BadInput, match="build has changed"):
        one.leg()
    assert one.row.state == "running"
    assert one.attempts() == Counter()


def test_a_fleet_that_does_not_start_leaves_the_sweep_to_be_resumed(place: Callable[..., Place]) -> None:
    one = place()

    def broken(_request: SweepRequest, _prepared: Prepared) -> AbstractContextManager[Fleet]:
        raise EnvironmentFault("workers do not start")

    with pytest.raises(EnvironmentFault, match="do not start"):
        resume_sweep("one", str(one.path), None, Quiet(), broken)
    assert one.leg().state == "done"


def test_a_job_lost_for_good_is_a_failure_of_the_infrastructure(place: Callable[..., Place]) -> None:
    def script(job: Job, _before: int) -> JobResult | str:
        return "NodeDied" if job.workload == D else result(job, {EAGER: passed(EAGER)})

    one = place()
    one.leg(script)
    assert one.labels == {"green": 10, "builds infra:lost": 4}


WIDE = replace(
    QUICK, required={rung: (*asked, *(replace(v, ranks=4) for v in asked)) for rung, asked in QUICK.required.items()}
)


def test_cases_on_several_ranks_run_after_the_others_in_slots_of_their_width(place: Callable[..., Place]) -> None:
    one = place(policed=WIDE)
    assert one.leg().state == "done"
    ranks = [ticket.variant.ranks for made in one.fleet.submitted for ticket in made.tickets]
    counted = Counter(ranks)
    assert counted[4] == 2 * len(QUICK.variants)
    first = ranks.index(4)
    assert set(ranks[first : first + counted[4]]) == {4}
    with one.engine.connect() as db:
        assert planning.outstanding(db, one.row.id) == []


def test_a_case_on_more_ranks_than_any_node_holds_is_refused_before_anything_runs(place: Callable[..., Place]) -> None:
    one = place(policed=WIDE, most_ranks=2)
    with pytest.raises(EnvironmentFault, match="no node has room for 4 ranks"):
        one.leg()
    assert one.fleet.submitted == []
    assert one.attempts() == Counter()


def test_a_full_disk_stops_a_sweep_with_words_and_it_goes_on_when_there_is_room(place: Callable[..., Place]) -> None:
    one = place()
    one.engine.dispose()
    full = one.path.stat().st_size // 4096 + 1

    def fill(connection: Any, _record: Any) -> None:
        connection.execute(f"PRAGMA max_page_count={full}")  # SQLite says of it what it says of a full disk

    def verbose(made: Job, _before: int) -> JobResult:
        found = replace(passed(EAGER)[0], evidence={"words": os.urandom(40_000).hex()})
        return result(made, {ticket.variant: [found, *passed(ticket.variant)[1:]] for ticket in made.tickets})

    event.listen(Engine, "connect", fill)
    try:
        with pytest.raises(EnvironmentFault, match=r"disk is full.*--resume one"):
            one.leg(verbose)
    finally:
        event.remove(Engine, "connect", fill)
    assert one.row.state == "running"
    assert one.leg().state == "done"
    assert one.attempts()["a", "record"] == one.attempts()["d", "record"] == 2
