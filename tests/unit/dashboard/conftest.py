"""A concluded and triaged sweep whose every string was written by somebody hostile, and pages over it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine

from neuronqa.dashboard.access import Access
from neuronqa.dashboard.app import create_app
from neuronqa.db import fix_store
from neuronqa.db.engine import open_engine
from neuronqa.db.fix_store import Offer, Verdict
from neuronqa.db.store import Store
from neuronqa.domain.catalog import Entry, ListingStatus
from neuronqa.domain.fix import Judgement
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
    sweep_id = 0
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
    queue_up(engine, sweep_id)
    return engine


def queue_up(engine: Engine, sweep_id: int) -> None:
    """Items of the fix queue: one that was handed in and judged, one that is held."""
    with engine.begin() as db:
        for cluster in (1, 2):
            offered = Offer(
                cluster_id=cluster, sweep_id=sweep_id, lane=HOSTILE, operator=f"aten::{HOSTILE}", title=HOSTILE,
                place=cluster, entries=20, downloads=7,
            )  # fmt: skip
            fix_store.offer(db, offered, 1.0, HOSTILE)
        handed_in = fix_store.claim(db, HOSTILE, 2.0, 60.0)
        assert handed_in is not None
        fix_store.submit(db, handed_in.token, "overlay", "a" * 64, "/nowhere", 3.0)
        taken = fix_store.take(db, 4.0, HOSTILE)
        said = Verdict(judgement=Judgement.REJECTED, stage="members", reason="values", note=HOSTILE, measured={})
        fix_store.judge(db, taken.id, said, 5.0, HOSTILE)
        fix_store.claim(db, HOSTILE, time.time(), 1e6, item_id=2)


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
