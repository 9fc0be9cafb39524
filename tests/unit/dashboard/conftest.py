"""A concluded and triaged sweep whose every string was written by somebody hostile, and pages over it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine

from neuronqa.dashboard.access import Access
from neuronqa.dashboard.app import create_app
from neuronqa.db.engine import open_engine
from neuronqa.db.store import Store
from neuronqa.domain.catalog import Entry, ListingStatus
from neuronqa.domain.observation import OpUse, Placement
from neuronqa.domain.outcome import Check, Kind
from neuronqa.domain.plan import PlanGroup
from neuronqa.sweep.conclude import conclude
from neuronqa.triage.settle import triage
from tests.builders import (
    COMPILED,
    EAGER,
    eligible,
    failed,
    open_sweep,
    passed,
    record,
    save_plan,
    summary,
    workload,
)

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202etxt\x1b[31m\ud800{{ 7*7 }}"
FORMULA = '=HYPERLINK("http://x","y")'
HERE = "http://127.0.0.1:8765"
NEEDED = "aten::cumsum"
FALLEN = [
    OpUse(op=op, dtype="float32", placement=Placement.CPU, mechanism=1, nbytes=64, ns=60, shapes=((4, 4),))
    for op in (NEEDED, f"aten::{HOSTILE}")
]


def fill(path: Path) -> Engine:
    """Sixty models of three workloads: one passes, one is wrong on the device, one falls back."""
    engine = open_engine(str(path), create=True)
    store = Store(engine)
    good, wrong, fallen = workload("good"), workload(HOSTILE), workload(FORMULA)
    groups = [(eligible(good), "a"), (eligible(wrong, model_type=HOSTILE), HOSTILE), (eligible(fallen), FORMULA)]
    listed = [
        (Entry(id=f"{name}/{n}", rank=3 * n + at + 1, downloads=1000 - n, task=HOSTILE), group)
        for n in range(20)
        for at, (group, name) in enumerate(groups)
    ]
    listed.append((Entry(id="gated", rank=61, downloads=0), PlanGroup(listing=ListingStatus.GATED.outcome(HOSTILE))))
    plan_id = save_plan(store, [good, wrong, fallen], listed)
    for name in ("one", "two"):
        sweep_id = open_sweep(store, plan_id, name=name)
        words = {"words": HOSTILE + "a" * 1_000_000, "message": FORMULA, "traceback": HOSTILE}
        nan = failed(EAGER, Check.PARITY, Kind.PARITY_NAN, HOSTILE, evidence=words)
        fell = failed(EAGER, Check.FALLBACK, Kind.FALLBACK_NO_KERNEL, NEEDED)
        made = [
            record(good, EAGER, take=name),
            record(good, COMPILED, take=name),
            record(wrong, EAGER, nan, take=name, worker=HOSTILE),
            record(wrong, COMPILED, passed(COMPILED), take=name),
            record(fallen, EAGER, fell, take=name, record={"ops": [asdict(op) for op in FALLEN]}),
            record(fallen, COMPILED, take=name),
        ]
        store.write(sweep_id, made)
        store.finish_sweep(sweep_id, "done", 1.0, summary(planned=3))
        conclude(store, name)
        triage(engine, name)
    return engine


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "filled.db"
    fill(path).dispose()
    return path


@pytest.fixture(scope="session")
def site(filled: Path) -> Iterator[TestClient]:
    """Pages nobody writes through, over a database that is only read."""
    engine = open_engine(str(filled), read_only=True)
    with TestClient(create_app(engine, Access(read_only=True)), base_url=HERE) as client:
        yield client
    engine.dispose()
