"""How many results the real driver takes in: `python -m tests.benchmark.driver [--slots N] [--workloads N]`. JSON out.

The driver, its queue, its agenda and the store are the real ones; the fleet is simulated: `--slots` workers that answer
at once, so that the driver is all that takes time. Into PostgreSQL on loopback, or with `--sqlite` into a file.

- `rows_per_s`: result rows stored a second of wall time; `rows_per_cpu_s` a second of this process' own.
- `rss_mb`: the most memory this process had.
- `profile` (with `--profile`): where this process spent its time.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import json
import pstats
import resource
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import func, select

from neuronqa.db import queries
from neuronqa.db import tables as t
from neuronqa.db.engine import open_engine
from neuronqa.db.store import Store
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Case
from neuronqa.domain.job import Job
from neuronqa.domain.workload import Workload
from neuronqa.sweep.agenda import load_agenda
from neuronqa.sweep.driver import Deal, Driver, Progress
from neuronqa.sweep.fleet import Completion
from neuronqa.sweep.ray_fleet import WINDOW
from neuronqa.sweep.request import SweepRequest
from neuronqa.sweep.schedule import Queue
from tests.benchmark.storage import database
from tests.builders import ORDER, QUICK, eligible, entries, open_sweep, result, save_plan
from tests.builders import workload as named
from tests.scripted import Quiet


class SimulatedFleet:
    """So many workers that answer at once."""

    def __init__(self, slots: int) -> None:
        self.size = slots
        self.refused: dict[str, str] = {}
        self._held: deque[tuple[int, Sequence[Job]]] = deque()
        self.wall_s = self.cpu_s = 0.0
        """What making results took: it is not the driver's."""

    def check_room(self, ranks: int) -> None:
        del ranks

    def lay_out(self, ranks: int) -> None:
        del ranks

    def await_first(self) -> None:
        pass

    def capacity(self) -> int:
        return self.size * WINDOW - len(self._held)

    def submit(self, token: int, jobs: Sequence[Job]) -> None:
        self._held.append((token, jobs))

    def wait(self, timeout: float) -> Sequence[Completion]:
        del timeout
        began, used = time.perf_counter(), time.process_time()
        done = [Completion(token=token, results=[result(job) for job in jobs]) for token, jobs in self._held]
        self._held.clear()
        self.wall_s += time.perf_counter() - began
        self.cpu_s += time.process_time() - used
        return done

    def close(self) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", type=int, default=2000)
    parser.add_argument("--workloads", type=int, default=5000)
    parser.add_argument("--sqlite", action="store_true")
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="nqa-driver-") as folder,
        database(folder, postgres=not arguments.sqlite) as url,
    ):
        print(json.dumps(measure(url, arguments), indent=1))


def pool(workloads: int) -> Iterator[Workload]:
    return (named(f"w{n}") for n in range(workloads))


def measure(url: str, asked: argparse.Namespace) -> dict[str, Any]:
    engine = open_engine(url, create=True)
    store = Store(engine)
    plan_id = save_plan(
        store, list(pool(asked.workloads)), entries([(eligible(w, w.hash), 1, 5) for w in pool(asked.workloads)])
    )
    request = SweepRequest(catalog="simulated", policy="quick", workers=asked.slots)
    sweep_id = open_sweep(store, plan_id)
    store.plan_cases(
        sweep_id,
        (Case(workload=w.hash, device="neuron", variant=v) for w in pool(asked.workloads) for v in QUICK.variants),
    )
    store.take_up(sweep_id)
    agenda = load_agenda(engine, "one", request, QUICK)
    fleet = SimulatedFleet(asked.slots)
    driver = Driver(fleet, store, Deal(sweep_id=sweep_id, device="neuron", key={}), Progress(planned=0), Quiet())
    order: BuildOrder = ORDER
    profile = cProfile.Profile()
    before, began = time.process_time(), time.perf_counter()
    if asked.profile:
        profile.enable()
    driver.run(Queue(agenda.jobs(order, 1)), None)
    profile.disable()
    wall, cpu = time.perf_counter() - began - fleet.wall_s, time.process_time() - before - fleet.cpu_s
    with engine.connect() as db:
        rows = int(db.execute(select(func.count()).select_from(t.result)).scalar_one())
        left = queries.sweep(db, "one")
    engine.dispose()
    return {
        "database": engine.dialect.name,
        "slots": asked.slots,
        "cases": driver.progress.done,
        "rows": rows,
        "sweep": left.name,
        "rows_per_s": round(rows / wall),
        "rows_per_cpu_s": round(rows / cpu),
        "rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        **({"profile": _lines(profile)} if asked.profile else {}),
    }


def _lines(profile: cProfile.Profile, most: int = 25) -> list[str]:
    text = io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(most)
    return [line for line in text.getvalue().splitlines() if line.strip()][-most - 1 :]


if __name__ == "__main__":
    main()
