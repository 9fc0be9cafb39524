"""The views for people who ask the database themselves, and the Grafana dashboards over them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from neuronqa.bundled import folder
from neuronqa.db import queries, views
from neuronqa.db.browse import ladder
from neuronqa.db.store import Store
from neuronqa.domain.outcome import LADDER, Check, Kind
from neuronqa.sweep.conclude import conclude
from tests.builders import EAGER, but, eligible, entries, passed, said, save_plan, workload
from tests.triaged import both, sweep

A, B, C = workload("a"), workload("b"), workload("c")
MM = but(passed(EAGER), said(Check.PARITY, Kind.PARITY_SCALE, "aten::mm float32"))
CHOSEN = {"sweep": "two", "catalog": "", "policy": "quick"}


@pytest.fixture
def swept(engine: Engine) -> Engine:
    """Two sweeps: one has everything, in the other a cause is new and a rate is withheld."""
    plan_id = save_plan(
        Store(engine), [A, B, C], entries([(eligible(A), 3, 10), (eligible(B), 2, 1), (eligible(C), 1, 1)])
    )
    good = [*both(A), *both(B)]
    sweep(engine, plan_id, "one", good)
    sweep(engine, plan_id, "two", [*good[:2], *both(B, MM)], "q", withheld={"parity": "a control was missed"})
    for name in ("one", "two"):
        conclude(Store(engine), name)
    return engine


def ask(engine: Engine, query: str, **given: Any) -> list[dict[str, Any]]:
    with engine.connect() as db:
        return [dict(row._mapping) for row in db.execute(text(query), given)]


def test_the_ladder_is_the_pages_own_and_shows_no_withheld_rate(swept: Engine) -> None:
    with swept.connect() as db:
        rows = {name: queries.sweep(db, name) for name in ("one", "two")}
        expected = {
            (name, lane.name, gate.rung.value): (gate.passed, gate.failed, gate.not_run, gate.low, gate.high)
            for name, row in rows.items()
            for lane in ladder.lanes(db, row)
            for gate in lane.gates
        }
    found = {
        (one["sweep"], one["lane"], one["rung"]): (
            one["executed"] + one["inherited"],
            one["failed"],
            one["not_run"],
            one["low"],
            one["high"],
        )
        for one in ask(swept, "SELECT * FROM v_ladder")
    }
    assert found == {key: pytest.approx(value) for key, value in expected.items()}
    assert found["two", "", "parity"][3:] == (None, None) != found["one", "", "parity"][3:]


def test_the_rungs_are_the_ladders_own(engine: Engine) -> None:
    rungs = ask(engine, "SELECT rung, height FROM v_rung ORDER BY height")
    assert [(one["rung"], one["height"]) for one in rungs] == [(rung.value, rung.height) for rung in LADDER]


def test_causes_come_in_the_order_of_fixes_and_say_what_became_of_them(swept: Engine) -> None:
    found = ask(swept, "SELECT * FROM v_cause WHERE sweep = 'two' ORDER BY place")
    assert [(one["detail"], one["entries"], one["place"]) for one in found] == [("aten::mm float32", 2, 1)]
    assert ask(swept, "SELECT action, after_state, sweep FROM v_journal") == [
        {"action": "born", "after_state": found[0]["state"], "sweep": "two"}
    ]


def test_every_file_is_a_view_and_every_view_a_file() -> None:
    assert {path.stem for path in (folder("db") / "views").glob("*.sql")} == set(views.NAMES)


def dashboards() -> list[Path]:
    return sorted((folder("dashboards") / "grafana").glob("*.json"))


def asked(board: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield f"variable {variable['name']}", variable["query"]
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["rawSql"]


def test_every_query_of_the_dashboards_runs_and_reads_views_alone(swept: Engine) -> None:
    catalog = ask(swept, "SELECT catalog FROM v_sweep LIMIT 1")[0]["catalog"]
    empty = []
    for path in dashboards():
        for title, query in asked(json.loads(path.read_text(encoding="ascii"))):
            sources = set(re.findall(r"(?:FROM|JOIN) (\w+)", query))
            assert sources <= set(views.NAMES), (title, sources)
            filled = query
            for name, value in {**CHOSEN, "catalog": catalog}.items():
                filled = filled.replace(f"${{{name}:sqlstring}}", f"'{value}'")
            assert "$" not in filled, title
            if not ask(swept, filled):
                empty.append(title)
    assert empty == ["Operators that fell to the CPU", "Controls"], "nothing fell, nothing was planted"


def test_dashboards_are_fit_for_a_grafana() -> None:
    boards = [json.loads(path.read_text(encoding="ascii")) for path in dashboards()]
    assert len({board["uid"] for board in boards}) == len(boards) == 2
    for board in boards:
        ids = [panel["id"] for panel in board["panels"]]
        assert len(set(ids)) == len(ids)
        places = [(one["gridPos"]["x"], one["gridPos"]["w"]) for one in board["panels"]]
        assert all(x >= 0 and x + w <= 24 for x, w in places)
        assert {one["datasource"]["uid"] for one in board["panels"]} == {"${datasource}"}
