"""A million entries take no more memory than the imports and 150 MB, in the driver and in its planner."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from neuronqa.catalog.config import stored_text
from neuronqa.catalog.snapshot import SnapshotWriter
from neuronqa.domain.catalog import Entry, Source

ROOT = Path(__file__).parents[3]
MILLION = 1_000_000
BOUND_MB = 150
CENSUS = """
import json, resource, sys
from neuronqa import catalog
from neuronqa.db.engine import open_engine
from neuronqa.db.store import Store
from neuronqa.sweep.census import census
from neuronqa.sweep.plan import make_plan
store = Store(open_engine(sys.argv[2], create=True))
empty = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = census(catalog.open(sys.argv[1]))
make_plan(catalog.open(sys.argv[1], select="all"), store)
me, child = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
counts = {status.value: count for status, count in found.statuses.items()}
print(json.dumps({"counts": counts, "driver_mb": (me - empty) / 1024, "child_mb": child / 1024}))
"""


def planned(folder: Path, cache: Path) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", CENSUS, str(folder), str(cache) + ".db"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NEURONQA_CACHE": str(cache), "OMP_NUM_THREADS": "1"},
    )
    told: dict[str, object] = json.loads(done.stdout)
    return told


def write(folder: Path, count: int) -> Path:
    """Entries of 200 widths of one type, so that the child imports the same for any count."""
    folder.mkdir()
    with SnapshotWriter(folder, "large", Source.FILE, made_by={}) as writer:
        base = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_attention_heads": 2}
        bodies = [json.dumps({**base, "hidden_size": 16 * (1 + n)}).encode() for n in range(200)]
        names = [writer.add_config(stored_text(body)) for body in bodies]
        for rank in range(1, count + 1):
            writer.add(Entry(id=f"org{rank % 999}/model-{rank}", rank=rank, downloads=1, config=names[rank % 200]))
    return folder


@pytest.mark.full
def test_a_million_entries_plan_in_bounded_memory(tmp_path: Path) -> None:
    few = planned(write(tmp_path / "few", 400), tmp_path / "cold")
    many = planned(write(tmp_path / "many", MILLION), tmp_path / "other")
    assert many["counts"] == {"eligible": MILLION}
    assert float(str(many["driver_mb"])) < BOUND_MB
    assert float(str(many["child_mb"])) < float(str(few["child_mb"])) + BOUND_MB
