"""Taking over verdicts, on every database: what is copied, what is executed again, and what is compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import Engine, select

from neuronqa.db import planning, queries
from neuronqa.db import tables as t
from neuronqa.db.occurrences import occurrences
from neuronqa.db.rows import AttemptRecord
from neuronqa.db.store import Store
from neuronqa.domain.build import BuildVector
from neuronqa.domain.case import AttemptKind, Case
from neuronqa.domain.outcome import Check, Kind
from neuronqa.domain.reuse import Spared
from neuronqa.sweep import reuse
from neuronqa.sweep.reuse import Reuse, carry_over, reuse_summary
from tests.builders import COMPILED, EAGER, eligible, entries, failed, open_sweep, passed, record, save_plan, vector
from tests.builders import workload as named

POOL = [named(f"w{n}") for n in range(4)]
HEIR = named("heir")
TERMS = "t" * 32


class Sweeps:
    """One plan that is swept again and again."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.store = Store(engine)
        listed = [(eligible(w, w.spec.family), 2, 5) for w in POOL] + [(eligible(HEIR, "w0"), 1, 1)]
        self.plan_id = save_plan(self.store, [*POOL, HEIR], entries(listed))
        self._names = iter("abcdef")

    def open(self, build: BuildVector | None = None, terms: str = TERMS) -> int:
        sweep_id = open_sweep(self.store, self.plan_id, name=next(self._names), build=build, terms=terms)
        cases = [Case(workload=w.hash, device="neuron", variant=v) for w in POOL for v in (EAGER, COMPILED)]
        self.store.plan_cases(sweep_id, cases)
        return sweep_id

    def ran(self, sweep_id: int, changed: Sequence[AttemptRecord] = ()) -> None:
        """Everything passes, but for what was `changed`."""
        said = {(one.case.workload, one.case.variant): one for one in changed}
        self.store.write(
            sweep_id,
            [said.get((w.hash, v)) or done(w, v, take=sweep_id) for w in POOL for v in (EAGER, COMPILED)],
        )

    def carry(self, sweep_id: int, build: BuildVector | None = None) -> Reuse:
        with self.engine.connect() as db:
            row = next(queries.sweep(db, name) for name in "abcdef" if queries.sweep(db, name).id == sweep_id)
        return carry_over(self.engine, self.store, row, build or vector())

    def left(self, sweep_id: int) -> set[tuple[str, str]]:
        by_hash = {w.hash: w.spec.family for w in POOL}
        with self.engine.connect() as db:
            return {(by_hash[one.workload], str(one.variant)) for one in planning.outstanding(db, sweep_id)}


def done(of: Any, variant: Any, findings: Any = None, ops: Sequence[str] = ("aten::add.Tensor",), **more: Any) -> Any:
    body = {"ops": [{"op": op} for op in ops]}
    return record(of, variant, findings, record=body, **{"ops_complete": True, **more})


@pytest.fixture
def sweeps(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Sweeps:
    monkeypatch.setattr(reuse, "DRAWN_LIMIT", 0)
    return Sweeps(engine)


def test_with_nothing_changed_everything_is_taken_over_with_its_findings(sweeps: Sweeps) -> None:
    first, bad = sweeps.open(), failed(EAGER, Check.RUN, Kind.RUN_CRASH, "SIGSEGV")
    crash = record(POOL[0], EAGER, bad)
    sweeps.ran(first, [crash])
    probe = record(POOL[0], EAGER, kind=AttemptKind.PROBE, probe_of=crash.ticket, ticket=f"{crash.ticket}.1")
    sweeps.store.write(first, [probe, record(HEIR, EAGER, kind=AttemptKind.AUDIT)])
    second = sweeps.open()
    assert sweeps.carry(second).cases == Counter({Spared.UNCHANGED: 8, Spared.DRAWN: 0})
    assert sweeps.left(second) == set()
    with sweeps.engine.connect() as db:
        assert queries.findings(db, second) == queries.findings(db, first)
        assert queries.findings(db, second, ["audit"]) == queries.findings(db, first, ["audit"])
        assert [(b.outcome, b.check) for b in occurrences(db, second)] == [
            (b.outcome, b.check) for b in occurrences(db, first)
        ]
        assert queries.work(db, second).cpu_s == queries.work(db, second).attempts == 0
        kinds = Counter(db.execute(select(t.attempt.c.kind).where(t.attempt.c.sweep_id == second)).scalars())
        assert kinds == Counter({"reused": 8, "probe": 1, "audit": 1})
        assert sum(n for _, _, n, _ in queries.costs(db)) == 8, "what was not executed teaches nothing about costs"
        assert reuse_summary(db, second) == {"spared": 8, "drawn": 0, "disagreed": 0, "disagreeing": []}


def test_a_third_sweep_takes_over_what_the_first_executed(sweeps: Sweeps) -> None:
    sweeps.ran(sweeps.open())
    for _ in range(2):
        again = sweeps.open()
        assert sweeps.carry(again).cases[Spared.UNCHANGED] == 8
        assert sweeps.left(again) == set()


def test_a_changed_kernel_executes_exactly_what_uses_it_and_what_is_unknown(sweeps: Sweeps) -> None:
    uses = [done(POOL[1], v, ops=("aten::add.Tensor", "aten::maximum")) for v in (EAGER, COMPILED)]
    unknown = done(POOL[2], EAGER, ops_complete=False)
    sweeps.ran(sweeps.open(), [*uses, unknown])
    build = vector(kernels={"aten::maximum": "1"})
    second = sweeps.open(build)
    found = sweeps.carry(second, build).cases
    assert sweeps.left(second) == {("w1", str(EAGER)), ("w1", str(COMPILED)), ("w2", str(EAGER))}
    assert (found[Spared.OUT_OF_REACH], found[Spared.KERNEL], found[Spared.OPERATORS_UNKNOWN]) == (5, 2, 1)


def test_a_changed_compiler_executes_every_compiled_case(sweeps: Sweeps) -> None:
    sweeps.ran(sweeps.open())
    build = vector(passes="another")
    second = sweeps.open(build)
    sweeps.carry(second, build)
    assert sweeps.left(second) == {(w.spec.family, str(COMPILED)) for w in POOL}


@pytest.mark.parametrize(("build", "terms"), [(vector(shim="another"), TERMS), (vector(), "u" * 32), (vector(), "")])
def test_under_another_device_or_other_terms_everything_is_executed(
    sweeps: Sweeps, build: BuildVector, terms: str
) -> None:
    sweeps.ran(sweeps.open(terms=terms and TERMS))
    second = sweeps.open(build, terms)
    sweeps.carry(second, build)
    assert len(sweeps.left(second)) == 8


def test_a_verdict_that_may_not_be_carried_over_is_executed_again(sweeps: Sweeps) -> None:
    sweeps.ran(sweeps.open(), [done(POOL[3], EAGER, failed(EAGER, Check.RUN, Kind.RUN_TIMEOUT))])
    second = sweeps.open()
    assert sweeps.carry(second).cases[Spared.UNSETTLED] == 1
    assert sweeps.left(second) == {("w3", str(EAGER))}


def test_a_build_that_was_swept_before_another_one_is_remembered(sweeps: Sweeps) -> None:
    sweeps.ran(sweeps.open())
    other = vector(kernels={"aten::add.Tensor": "1"})
    tried = sweeps.open(other)
    sweeps.carry(tried, other)
    sweeps.ran(tried, [done(w, v, failed(v, Check.PARITY, Kind.PARITY_SCALE)) for w in POOL for v in (EAGER, COMPILED)])
    back = sweeps.open()
    assert sweeps.carry(back).cases == Counter({Spared.UNCHANGED: 8, Spared.DRAWN: 0})
    with sweeps.engine.connect() as db:
        assert {o.kind.reason for found in queries.findings(db, back).values() for o in found.values()} == {"pass"}


@pytest.mark.parametrize("agrees", [True, False])
def test_a_few_are_executed_anyway_and_compared(sweeps: Sweeps, monkeypatch: pytest.MonkeyPatch, agrees: bool) -> None:
    monkeypatch.setattr(reuse, "DRAWN_LIMIT", 20)
    sweeps.ran(sweeps.open())
    second = sweeps.open()
    assert sweeps.carry(second).cases == Counter({Spared.UNCHANGED: 8, Spared.DRAWN: 2})
    (drawn,) = {family for family, _ in sweeps.left(second)}
    of = next(w for w in POOL if w.spec.family == drawn)
    wrong = passed(EAGER) if agrees else failed(EAGER, Check.PARITY, Kind.PARITY_NAN)
    sweeps.store.write(second, [done(of, EAGER, wrong, take=9), done(of, COMPILED, take=9)])
    with sweeps.engine.connect() as db:
        said = reuse_summary(db, second)
    assert (said["spared"], said["drawn"], said["disagreed"]) == (6, 2, 0 if agrees else 1)
    assert said["disagreeing"] == ([] if agrees else [f"{of.hash} {EAGER}"])
