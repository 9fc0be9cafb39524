"""What catalogs cost: `python -m tests.benchmark.catalog [ENTRIES]`, JSON on stdout.

Generates the offline edition, writes a catalog of ENTRIES (1,000,000) that uses its configs, reads it, and plans it in
a cold and in a warm cache, stores its plan and selects half of it. CPU seconds here and in children, and the largest
resident size of each.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from neuronqa import catalog as catalogs
from neuronqa.catalog import offline
from neuronqa.catalog.snapshot import Snapshot, SnapshotWriter
from neuronqa.db.engine import open_engine
from neuronqa.db.store import Store
from neuronqa.domain.catalog import Source
from neuronqa.sweep.census import census
from neuronqa.sweep.plan import PLANNER, make_plan


def measured(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Its result, and CPU seconds spent here and in children."""
    before = (time.process_time(), resource.getrusage(resource.RUSAGE_CHILDREN))
    result = work()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = children.ru_utime + children.ru_stime - before[1].ru_utime - before[1].ru_stime
    return result, {"cpu_s": round(time.process_time() - before[0], 2), "children_cpu_s": round(spent, 2)}


def write(folder: Path, edition: Snapshot, count: int) -> Snapshot:
    """A catalog of `count` entries, made of the edition's over and over."""
    folder.mkdir()
    with SnapshotWriter(folder, "large", Source.FILE, made_by={}) as writer:
        for _, text in edition.configs():
            writer.add_config(text)
        repeated: Iterator[Any] = itertools.chain.from_iterable(edition.entries() for _ in itertools.count())
        for rank, entry in enumerate(itertools.islice(repeated, count), start=1):
            writer.add(replace(entry, id=f"{entry.id}-{rank}", rank=rank, base_model=""))
    return Snapshot.open(folder)


def planner_resident_mb(configs: list[tuple[str, str]]) -> float:
    """The largest resident size of a planner that is given these configs."""
    script = (
        "import resource, subprocess, sys\n"
        f"subprocess.run({list(PLANNER)!r}, stdin=sys.stdin, stdout=subprocess.DEVNULL, check=True)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)"
    )
    lines = "".join(json.dumps({"hash": name, "text": text}) + "\n" for name, text in configs)
    done = subprocess.run([sys.executable, "-c", script], input=lines, capture_output=True, text=True, check=True)
    return round(float(done.stdout), 1)


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as home:
        os.environ["NEURONQA_CACHE"] = home
        edition_folder, generating = measured(lambda: offline.ensure(Path(home) / "offline"))
        edition = Snapshot.open(edition_folder)
        large, writing = measured(lambda: write(Path(home) / "large", edition, count))
        _, reading = measured(lambda: sum(1 for _ in large.entries()))
        resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        found, cold = measured(lambda: census(large))
        planned = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        _, warm = measured(lambda: census(large))
        store = Store(open_engine(str(Path(home) / "plan.db"), create=True))
        _, storing = measured(lambda: make_plan(large, store))
        stored = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        half, selecting = measured(lambda: catalogs.selected(large, f"top-{count // 2}"))
        configs = [pair for _, pair in zip(range(found.configs), edition.configs(), strict=False)]
        told = {
            "entries": count,
            "offline_edition": generating,
            "write": writing,
            "read": {**reading, "us_per_entry": round(reading["cpu_s"] / count * 1e6, 1)},
            "plan_cold": {**cold, "ms_per_config": round(cold["children_cpu_s"] / found.configs * 1e3, 2)},
            "plan_warm": {**warm, "us_per_entry": round(warm["cpu_s"] / count * 1e6, 1)},
            "plan_stored": {**storing, "us_per_entry": round(storing["cpu_s"] / count * 1e6, 1)},
            "select_half": {**selecting, "us_per_entry": round(selecting["cpu_s"] / count * 1e6, 1)},
            "selected": half.info.registered,
            "configs": found.configs,
            "kernel_keys": len(found.kernel_keys),
            "driver_resident_mb": {
                "before": round(resident, 1),
                "after_plan": round(planned, 1),
                "after_storing": round(stored, 1),
            },
            "planner_resident_mb": {"one": planner_resident_mb(configs[:1]), "all": planner_resident_mb(configs)},
        }
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
