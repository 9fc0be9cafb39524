"""What became dearer between two sweeps is told, and gates nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine

from neuronqa.db.engine import open_engine
from neuronqa.db.measures import Measure
from neuronqa.db.store import Store
from neuronqa.domain.change import Change
from neuronqa.domain.finding import Finding
from neuronqa.domain.outcome import Check, Kind
from neuronqa.report import export, performance
from neuronqa.report.compare import compare
from neuronqa.report.performance import Figure
from tests.builders import EAGER, but, eligible, entries, failed, passed, record, said, save_plan, workload
from tests.triaged import sweep

POOL = [workload(f"w{n}") for n in range(6)]


def figures(check: Check, *values: float) -> list[Measure]:
    return [
        Measure(case=f"c{n}", check=check, family="llama", variant="eager/fp32/train", value=value)
        for n, value in enumerate(values)
    ]


RUN, COMPILE, FALLBACK = Check.RUN, Check.COMPILE, Check.FALLBACK
TABLE = [
    (RUN, (1, 1, 1, 1, 1), (1, 1, 1, 1, 1.6), ["c4"]),
    (RUN, (1, 1, 1, 1, 1), (2, 2, 2, 2, 2), []),
    (RUN, (1, 1, 1, 1, 1), (2, 2, 2, 2, 3.2), ["c4"]),
    (RUN, (1, 1, 1, 1, 1), (1, 1, 1, 1, 1.4), []),
    (RUN, (1, 1, 1, 1), (1, 1, 1, 9), []),
    (RUN, (0, 1, 1, 1, 1, 1), (9, 1, 1, 1, 1, 1), []),
    (COMPILE, (10, 10), (13, 11), ["c0"]),
    (COMPILE, (0,), (13,), []),
    (FALLBACK, (0, 0.5, 0.5), (0.06, 0.54, 0.1), ["c0"]),
    (FALLBACK, (), (0.9,), []),
]


@pytest.mark.parametrize(("check", "before", "after", "named"), TABLE)
def test_what_is_dearer(check: Check, before: tuple[float, ...], after: tuple[float, ...], named: list[str]) -> None:
    found = performance.compare(figures(check, *before), figures(check, *after))
    assert [one.case for one in found.dearer] == named
    assert found.compared == min(len(before), len(after))


def test_the_worst_of_each_figure_comes_first() -> None:
    before = [*figures(FALLBACK, 0, 0), *figures(COMPILE, 1, 1)]
    found = performance.compare(before, [*figures(FALLBACK, 0.1, 0.2), *figures(COMPILE, 2, 3)])
    order = [(one.figure, one.case) for one in found.dearer]
    assert order == [
        (Figure.COMPILE, "c1"),
        (Figure.COMPILE, "c0"),
        (Figure.FALLBACK, "c1"),
        (Figure.FALLBACK, "c0"),
    ]
    assert [line["after"] for line in found.to_json(1)["lines"]] == [3]
    assert found.to_json(1)["dearer"] == 4


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return open_engine(str(tmp_path / "performance.db"), create=True)


def test_a_slower_case_is_named_and_stays_green(engine: Engine, tmp_path: Path) -> None:
    plan = save_plan(Store(engine), POOL, entries([(eligible(of), 1, 10) for of in POOL]))

    def ran(seconds: float) -> list[Finding]:
        return but(passed(EAGER), said(RUN, Kind.RUN_PASS, measure=seconds))

    crashed = failed(EAGER, RUN, Kind.RUN_CRASH, "SIGSEGV aten::mm", measure=50.0)
    sweep(engine, plan, "one", [record(of, EAGER, ran(1.0)) for of in POOL])
    slower = [ran(1.0)] * 4 + [ran(3.0), crashed]
    sweep(engine, plan, "two", [record(of, EAGER, found) for of, found in zip(POOL, slower, strict=True)])
    with engine.connect() as db:
        found = export.performance(db, "one", "two")
        export.write(db, "one", tmp_path / "one.parquet")
        assert export.performance(db, str(tmp_path / "one.parquet"), "two") is None
        entries_of_both = compare(export.side(db, "one"), export.side(db, "two"))
    assert found is not None
    assert [(one.family, one.figure, one.before, one.after) for one in found.dearer] == [
        (POOL[4].spec.family, Figure.STEP, 1.0, 3.0)
    ]
    assert not any(line.change is Change.REGRESSED and "w4" in line.name for line in entries_of_both.lines)
