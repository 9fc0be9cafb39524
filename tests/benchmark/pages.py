"""What every page costs the server, and weighs compressed: `python -m tests.benchmark.pages DATABASE [TIMES]`.

Makes the database where there is none (`tests.benchmark.large`). Prints JSON: milliseconds of CPU at the median and the
95th percentile and kB of gzip for every page, at the newest sweep, first answers included.
"""

from __future__ import annotations

import gzip
import json
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, select
from starlette.testclient import TestClient

from neuronqa.dashboard.app import create_app
from neuronqa.db import cluster_tables as ct
from neuronqa.db import queries
from neuronqa.db import tally_tables as tt
from neuronqa.db.browse import cases
from neuronqa.db.engine import open_engine

TIMES = 20
ASSETS = ("app.css", "app.js", "vendor/htmx.min.js", "vendor/sse.min.js", "vendor/chart.umd.min.js")


def pages(db: Connection) -> Iterator[str]:
    """Every page, and the questions that cost most: wide filters, narrow ones, searches, deep pages."""
    row = queries.sweep(db)
    yield from ("/", "/?weight=downloads", "/sweeps", "/controls", "/clusters", "/clusters?sort=entries", "/members")
    yield from ("/models", "/workloads", "/cases", "/ops", "/worksheet", "/needing", "/compare")
    yield from ("/models?missed=parity", "/models?q=llama", "/models?q=nothing-has-this", "/workloads?q=bert")
    yield from ("/cases?check=parity", "/cases?q=wrong", "/cases?q=nothinghasthis", "/workloads?sort=family")
    counted = select(ct.cluster_count).where(ct.cluster_count.c.sweep_id == row.id)
    first = db.execute(counted.order_by(ct.cluster_count.c.place)).first()
    if first is not None:
        yield from (f"/clusters/{first.cluster_id}", f"/members?cluster={first.cluster_id}")
        yield from (f"/models?cluster={first.cluster_id}", f"/cases/{first.attempt_id}")
        yield f"/workloads/{cases.attempt(db, first.attempt_id).workload}"
    yield from ("/models/1", f"/models/{row.catalog.registered // 2}")
    needed = db.execute(select(tt.op_need.c.op).where(tt.op_need.c.sweep_id == row.id).limit(1)).scalar()
    if needed is not None:
        yield from (f"/ops/{quote(needed)}", f"/models?op={quote(needed)}")


def measure(client: TestClient, path: str, times: int) -> dict[str, Any]:
    """CPU milliseconds of one page, asked for `times` times."""
    spent = []
    body = b""
    for _ in range(times):
        began = time.process_time()
        answer = client.get(path)
        spent.append(1000 * (time.process_time() - began))
        if answer.status_code != 200:
            return {"status": answer.status_code}
        body = answer.content
    spent.sort()
    return {
        "median_ms": round(statistics.median(spent), 1),
        "p95_ms": round(spent[max(0, int(0.95 * len(spent)) - 1)], 1),
        "kb": round(len(gzip.compress(body, 6)) / 1000, 1),
    }


def main(path: str, times: int) -> None:
    if not Path(path).exists():
        from tests.benchmark import large

        large.make(path, 1_000_000, 100_000, 2_000)
    engine = open_engine(path, read_only=True)
    client = TestClient(create_app(engine), base_url="http://127.0.0.1")
    with engine.connect() as db:
        asked = list(pages(db))
    found = {one: measure(client, one, times) for one in asked}
    static = Path(__file__).parents[2] / "dashboards" / "static"
    assets = sum(len(gzip.compress((static / name).read_bytes(), 6)) for name in ASSETS) / 1000
    worst = max((one.get("p95_ms", 0.0) for one in found.values()), default=0.0)
    heaviest = max((one.get("kb", 0.0) for one in found.values()), default=0.0) + assets
    print(json.dumps({"pages": found, "assets_kb": round(assets, 1), "worst_p95_ms": worst, "heaviest_kb": heaviest}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else TIMES)
