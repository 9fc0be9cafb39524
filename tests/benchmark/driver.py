"""How many results the real driver takes in: `python -m tests.benchmark.driver [--slots N] [--workloads N]`. JSON out.

The driver, its queue, its agenda and the store are the real ones; the fleet is simulated: `--slots` workers that answer
at once, so that the driver is all that takes time. Into PostgreSQL on loopback, or with `--sqlite` into a file.

- `rows_per_s`: result rows stored a second of wall time; `rows_per_cpu_s` a second of this process' own.
- `rss_mb`: the most memory this process had, the plan's cases written ahead by it included. `--execute` lets it stop
  after so many cases, for plans too large to be worked off.
- `profile` (with `--profile`): where this process spent its time.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import json
import multiprocessing
import pstats
import resource
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import func, select

from neuronqa.db import tables as t
from neuronqa.db.engine import open_engine
from neuronqa.db.store import Store
from neuronqa.domain.catalog import CatalogInfo, Entry, Source
from neuronqa.domain.job import Job
from neuronqa.domain.workload import Workload
from neuronqa.sweep.agenda import load_agenda
from neuronqa.sweep.driver import Deal, Driver, Progress
from neuronqa.sweep.fleet import Completion
from neuronqa.sweep.ray_fleet import WINDOW
from neuronqa.sweep.request import SweepRequest
from neuronqa.sweep.schedule import Queue
from tests.benchmark.storage import database
from tests.builders import ORDER, QUICK, eligible, open_sweep, result
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
    parser.add_argument("--execute", type=int, default=None)
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


def plan(url: str, workloads: int) -> None:
    """One entry for every workload; in a process of its own, because a plan is made once for many sweeps."""
    engine = open_engine(url, create=True)
    info = CatalogInfo(name="simulated", source=Source.SYNTHETIC, sha256="c" * 64, registered=workloads, created="")
    listed = (
        (Entry(id=f"synthetic/model-{rank}", rank=rank, downloads=5), eligible(workload, workload.hash))
        for rank, workload in enumerate(pool(workloads), 1)
    )
    Store(engine).save_plan("p" * 32, info, {}, pool(workloads), listed)
    engine.dispose()


def measure(url: str, asked: argparse.Namespace) -> dict[str, Any]:
    planner = multiprocessing.get_context("spawn").Process(target=plan, args=(url, asked.workloads))
    planner.start()
    planner.join()
    engine = open_engine(url, create=True)
    store = Store(engine)
    sweep_id = open_sweep(store, 1)
    store.take_up(sweep_id)
    request = SweepRequest(catalog="simulated", policy="quick", workers=asked.slots)
    agenda = load_agenda(engine, "one", request, QUICK)
    store.plan_cases(sweep_id, agenda.cases())
    fleet = SimulatedFleet(asked.slots)
    display = Until(asked.execute or 2 * asked.workloads)
    deal = Deal(sweep_id=sweep_id, device="neuron", key={})
    driver = display.driver = Driver(fleet, store, deal, Progress(planned=0), display)
    profile = cProfile.Profile()
    before, began = time.process_time(), time.perf_counter()
    if asked.profile:
        profile.enable()
    driver.run(Queue(agenda.jobs(ORDER, 1)), None)
    profile.disable()
    wall, cpu = time.perf_counter() - began - fleet.wall_s, time.process_time() - before - fleet.cpu_s
    with engine.connect() as db:
        rows = int(db.execute(select(func.count()).select_from(t.result)).scalar_one())
    engine.dispose()
    return {
        "database": engine.dialect.name,
        "slots": asked.slots,
        "planned": asked.workloads * len(QUICK.variants),
        "executed": driver.progress.done,
        "rows": rows,
        "rows_per_s": round(rows / wall),
        "rows_per_cpu_s": round(rows / cpu),
        "rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        **({"profile": _lines(profile)} if asked.profile else {}),
    }


class Until(Quiet):
    """Stops its driver after so many cases."""

    def __init__(self, cases: int) -> None:
        super().__init__()
        self._cases = cases
        self.driver: Driver | None = None

    def show(self, progress: Progress) -> None:
        if self.driver is not None and progress.done >= self._cases:
            self.driver.stop("enough")


def _lines(profile: cProfile.Profile, most: int = 25) -> list[str]:
    text = io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(most)
    return [line for line in text.getvalue().splitlines() if line.strip()][-most - 1 :]


if __name__ == "__main__":
    main()
