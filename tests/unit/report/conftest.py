"""A little triaged database with hostile strings in everything that comes from outside."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from neuronqa.db import queries
from neuronqa.db.engine import open_engine
from neuronqa.db.store import Store
from neuronqa.domain.catalog import Entry
from neuronqa.domain.outcome import Check, Kind
from neuronqa.report.build import build
from neuronqa.report.value import Report
from neuronqa.triage import actions
from tests.builders import EAGER, but, eligible, entries, passed, said, save_plan, workload
from tests.triaged import both, sweep

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202eevil\x00=HYPERLINK(1)|`x`]]>@all #1"
A, B, C = workload("a"), workload("b"), workload("c" + HOSTILE)
GELU = but(passed(EAGER), said(Check.FALLBACK, Kind.FALLBACK_NO_KERNEL, "aten::gelu float32"))
EVIL = but(passed(EAGER), said(Check.RUN, Kind.RUN_ERROR, HOSTILE, evidence={"words": HOSTILE, "message": HOSTILE}))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    opened = open_engine(str(tmp_path / "report.db"), create=True)
    listed = entries([(eligible(A), 5, 10), (eligible(B), 3, 10), (eligible(C), 2, 1)])
    last, group = listed[-1]
    listed[-1] = (Entry(id=HOSTILE, rank=last.rank, downloads=1), group)
    plan_id = save_plan(Store(opened), [A, B, C], listed)
    sweep(opened, plan_id, "one", [*both(A, GELU), *both(B), *both(C, EVIL)])
    with opened.connect() as db:
        assert queries.sweep(db, "one").plan_id == plan_id
    until = time.time() + 1000
    actions.mute(opened, "1", owner=HOSTILE, reason=HOSTILE, until=until, actor=HOSTILE)
    yield opened
    opened.dispose()


@pytest.fixture
def report(engine: Engine) -> Report:
    with engine.connect() as db:
        return build(db, "one")
