"""Regressions looked at again, equally often on both builds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from neuronqa.db.engine import open_engine
from neuronqa.db.queries import SweepRow
from neuronqa.db.store import Store
from neuronqa.domain.case import Variant
from neuronqa.domain.change import Change
from neuronqa.domain.outcome import Check, Kind
from neuronqa.domain.workload import Workload
from neuronqa.errors import EnvironmentFault
from neuronqa.report import confirm, export
from neuronqa.report.compare import compare
from neuronqa.sweep.rerun import Again
from tests.builders import EAGER, but, eligible, entries, passed, said, save_plan, workload
from tests.triaged import both, sweep

A, B = workload("a"), workload("b")
WRONG = but(passed(EAGER), said(Check.PARITY, Kind.PARITY_SCALE, "aten::mm float32"))


@pytest.mark.parametrize(
    ("fails", "gone", "expected"),
    [
        ({"two"}, False, "confirmed: failed 3 of 3, before 0 of 3"),
        (set(), False, "not reproduced: failed 0 of 3, before 0 of 3"),
        ({"one", "two"}, False, "flaky: failed 3 of 3, before 3 of 3"),
        ({"two"}, True, "not run again: a build is not here any more"),
    ],
)
def test_both_builds_run_what_regressed_equally_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: set[str], gone: bool, expected: str
) -> None:
    ran: list[tuple[str, str]] = []

    class Runner:
        def __init__(self, name: str) -> None:
            self._name = name

        def run(self, of: Workload, variants: Sequence[Variant]) -> dict[Variant, Again]:
            ran.append((self._name, of.hash))
            found = WRONG if self._name in fails else passed(EAGER)
            return {variant: Again(findings=tuple(found)) for variant in variants}

    @contextmanager
    def bench(row: SweepRow) -> Iterator[Runner]:
        yield Runner(row.name)

    def order(row: SweepRow) -> None:
        if gone and row.name == "two":
            raise EnvironmentFault("gone")

    monkeypatch.setattr(confirm, "bench", bench)
    monkeypatch.setattr(confirm, "order", order)
    engine = open_engine(str(tmp_path / "confirm.db"), create=True)
    plan_id = save_plan(Store(engine), [A, B], entries([(eligible(A), 2, 1), (eligible(B), 1, 1)]))
    sweep(engine, plan_id, "one", [*both(A), *both(B)])
    sweep(engine, plan_id, "two", [*both(A, WRONG), *both(B)], "q")
    with engine.connect() as db:
        found = confirm.confirm(db, compare(export.side(db, "one"), export.side(db, "two")))
    engine.dispose()
    assert {line.confirmed for line in found.of(Change.REGRESSED)} == {expected}
    assert found.counts[Change.REGRESSED] == 2, "a second look labels, it does not decide"
    assert ran == ([] if gone else [("one", A.hash)] * 3 + [("two", A.hash)] * 3), "neither side alone"
