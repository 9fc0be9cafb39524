"""How fast results are written and read: `python -m tests.benchmark.storage [--results 100000] [--postgres]`. JSON out.

Attempts of ten checks each, as a sweep writes them: a body of their own, evidence in words, now and then a failure with
two blockers. They go through `Store.write` in the driver's own portions: into a SQLite file, or
with `--postgres` into a server of its own on loopback.

- `rows_per_s`: result rows stored a second of wall time, and of this process' CPU time.
- `bytes_per_result`: of attempts, results and blockers with their indices, blobs apart.
- `queries_ms`: what a driver asks, the second time it is asked; `large` asks what pages do.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Engine, text

from neuronqa.db import planning, queries
from neuronqa.db.engine import open_engine
from neuronqa.db.rows import AttemptRecord
from neuronqa.db.store import Store
from neuronqa.domain.case import Case
from neuronqa.domain.outcome import Check, Kind, Outcome
from neuronqa.domain.workload import Workload
from neuronqa.sweep.driver import FLUSH_ROWS
from neuronqa.sweep.standings import partial_standings
from tests.builders import COMPILED, EAGER, eligible, entries, failed, open_sweep, passed, record, save_plan, summary
from tests.builders import workload as named
from tests.contract.conftest import Server

VARIANTS: Final = (EAGER, COMPILED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=int, default=100_000)
    parser.add_argument("--postgres", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="nqa-storage-") as folder, database(folder, arguments.postgres) as url:
        engine = open_engine(url, create=True)
        print(json.dumps(measure(engine, arguments.results), indent=1))
        engine.dispose()


@contextmanager
def database(folder: str, postgres: bool) -> Iterator[str]:
    if not postgres:
        yield f"{folder}/results.db"
        return
    base = Path(folder)
    base.chmod(0o755)
    server = Server(base)
    server.start()
    try:
        yield server.url
    finally:
        server.stop()


def measure(engine: Engine, results: int) -> dict[str, Any]:
    store = Store(engine)
    pool = [named(f"w{n}") for n in range(max(1, results // (10 * len(VARIANTS))))]
    plan_id = save_plan(store, pool, entries([(eligible(w), 1, 5) for w in pool]))
    sweep_id = open_sweep(store, plan_id)
    store.plan_cases(sweep_id, (Case(workload=w.hash, device="neuron", variant=v) for w in pool for v in VARIANTS))
    made = list(attempts(pool))
    rows = sum(len(one.findings) for one in made)
    portions = [made[at : at + FLUSH_ROWS // 10] for at in range(0, len(made), FLUSH_ROWS // 10)]
    before, began = used(), time.perf_counter()
    for portion in portions:
        store.write(sweep_id, portion)
    took, cpu = time.perf_counter() - began, used() - before
    store.finish_sweep(sweep_id, "done", 1.0, summary())
    with engine.connect() as db:
        row = queries.sweep(db)
        states = [item for part in partial_standings(db, row) for item in part.states.items()]
    store.save_standings(sweep_id, states)
    with engine.begin() as db:
        db.execute(text("ANALYZE"))
    return {
        "database": engine.dialect.name,
        "results": rows,
        "rows_per_s": {"wall": round(rows / took), "cpu": round(rows / cpu)},
        "bytes_per_result": round(size(engine) / rows, 1),
        "queries_ms": dict(asked(engine)),
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def attempts(pool: Sequence[Workload]) -> Iterator[AttemptRecord]:
    for number, (of, variant) in enumerate((w, v) for w in pool for v in VARIANTS):
        findings = passed(variant)
        if number % 5 == 0:
            others = (Outcome(Kind.FALLBACK_NO_KERNEL, f"aten::b{number % 40}"),)
            detail = f"aten::a{number % 40}"
            findings = failed(variant, Check.FALLBACK, Kind.FALLBACK_NO_KERNEL, detail, others=others)
        body = {"exit": {"wall_s": 1.0 + number}, "ops": [{"op": f"aten::op{n}", "count": number} for n in range(20)]}
        findings = [replace(one, measure=0.5 * number) for one in findings]
        yield record(of, variant, findings, record=body, ops_complete=True, node="node-1", worker="node-1/12345")


def asked(engine: Engine) -> Iterator[tuple[str, float]]:
    with engine.connect() as db:
        row = queries.sweep(db)
    questions: dict[str, Callable[[Any], Any]] = {
        "sweeps": queries.sweeps,
        "work": lambda db: queries.work(db, row.id),
        "controls": lambda db: queries.controls(db, row.id),
        "reconciliation": lambda db: queries.reconciliation(db, row.id, row.plan_id),
        "left": lambda db: planning.left(db, row.id),
        "costs": queries.costs,
        "findings of 500 workloads": lambda db: queries.findings(
            db, row.id, workloads=[named(f"w{n}").hash for n in range(500)]
        ),
    }
    for name, question in questions.items():
        with engine.connect() as db:
            question(db)
            began = time.perf_counter()
            question(db)
            yield name, round((time.perf_counter() - began) * 1000, 1)


def size(engine: Engine) -> float:
    tables = ("attempt", "result", "blocker")
    with engine.connect() as db:
        if engine.dialect.name == "postgresql":
            return float(sum(db.execute(text(f"SELECT pg_total_relation_size('{t}')")).scalar_one() for t in tables))
        names = ", ".join(f"'{t}'" for t in tables)
        query = (
            f"SELECT sum(pgsize) FROM dbstat WHERE name IN (SELECT name FROM sqlite_master WHERE tbl_name IN ({names}))"
        )
        return float(db.execute(text(query)).scalar_one())


def used() -> float:
    times = os.times()
    return times.user + times.system


if __name__ == "__main__":
    main()
