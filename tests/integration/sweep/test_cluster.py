"""A sweep on a Ray of three nodes: whatever happens to one of them, every case is in the results, and once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from neuronqa.db import planning, queries
from neuronqa.db import tables as t
from neuronqa.db.engine import open_engine
from neuronqa.sweep.policies import load_policy

ROOT = Path(__file__).parents[3]
WORKLOADS = 60
pytestmark = pytest.mark.full  # three raylets and their workers are started: a minute for each scene


@pytest.fixture(params=["node", "worker", "joiner", "unsound"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    catalog = tmp_path / "catalog"
    catalog.mkdir()
    lines = ['schema_version = 1\nname = "little"\nsource = "file"']
    lines += [f'[[entry]]\nid = "little/{n}"\nfactory = "models.py:make"\nseed = {n}' for n in range(WORKLOADS)]
    (catalog / "catalog.toml").write_text("\n".join(lines))
    (catalog / "models.py").write_text("def make():\n    raise NotImplementedError\n")
    database = tmp_path / "sweep.db"
    done = subprocess.run(
        [sys.executable, "-m", "tests.cluster_scenarios", request.param, str(database), str(catalog)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert (said["state"], said["happened"]) == ("done", True)
    return request.param, database


def test_every_case_is_in_the_results_once_whatever_happens_to_a_node(scene: tuple[str, Path]) -> None:
    happened, database = scene
    engine = open_engine(str(database))
    with engine.connect() as db:
        sweep = queries.sweep(db)
        attempts = db.execute(select(t.attempt.c.case_id, t.attempt.c.node, t.attempt.c.kind)).all()
        left = planning.outstanding(db, sweep.id)
        findings = queries.findings(db, sweep.id)
    engine.dispose()
    assert left == []
    by_case = Counter(one.case_id for one in attempts if one.kind == "record")
    assert len(by_case) == WORKLOADS * len(load_policy("quick").variants)
    assert set(by_case.values()) == {1}
    assert {str(o) for found in findings.values() for o in found.values() if "infra" in str(o)} == set()
    assert len({one.node for one in attempts}) == (4 if happened == "joiner" else 3)
    refused = (sweep.summary or {})["refused nodes"]
    if happened == "unsound":
        ((name, why),) = refused.items()
        assert why == f"{name} computes wrongly: matmul in float32"
    else:
        assert refused == {}
