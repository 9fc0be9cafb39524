"""A sweep that is killed or interrupted goes on where it was: every case once, none lost, none twice."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from neuronqa.db import planning, queries
from neuronqa.db.engine import open_engine
from neuronqa.sweep.policies import load_policy
from neuronqa.sweep.standings import standings

ROOT = Path(__file__).parents[3]
WORKLOADS = 24
PATIENCE_S = 120


@dataclass
class Place:
    """A catalog, a database, and the sweeps that run on them."""

    folder: Path
    running: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def database(self) -> Path:
        return self.folder / "sweep.db"

    def write_catalog(self) -> None:
        """Every workload under two ids, and some entries nothing can be run for."""
        lines = ['schema_version = 1\nname = "little"\nsource = "file"']
        lines += [
            f'[[entry]]\nid = "little/{n}{twin}"\nfactory = "models.py:make"\nseed = {n}\ndownloads = {n}'
            for n in range(WORKLOADS)
            for twin in "ab"
        ]
        lines += [f'[[entry]]\nid = "little/gated{n}"\nabsence = "gated"' for n in range(3)]
        (self.folder / "catalog").mkdir()
        (self.folder / "catalog" / "catalog.toml").write_text("\n".join(lines))
        (self.folder / "catalog" / "models.py").write_text("def make():\n    raise NotImplementedError\n")

    def start(self, pace: float = 0.0, stall: int = 0, resume: str = "") -> subprocess.Popen[str]:
        arguments = [
            str(self.database),
            str(self.folder / "catalog"),
            str(pace),
            str(stall),
            *([resume] if resume else []),
        ]
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.little_sweep", *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.running.append(child)
        return child

    def rows(self, query: str) -> list[Any]:
        if not self.database.exists():
            return []
        connection = sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)
        try:
            return connection.execute(query).fetchall()
        except sqlite3.OperationalError:
            return []
        finally:
            connection.close()

    def attempts(self) -> int:
        found = self.rows("SELECT count(*) FROM attempt WHERE kind = 'record'")
        return int(found[0][0]) if found else 0

    def await_attempts(self, child: subprocess.Popen[str], least: int) -> None:
        until = time.monotonic() + PATIENCE_S
        while self.attempts() < least:
            if child.poll() is not None or time.monotonic() > until:
                child.kill()
                pytest.fail(f"{self.attempts()} attempts, not {least}; the sweep said: {child.communicate()}")
            time.sleep(0.05)

    @property
    def name(self) -> str:
        ((name,),) = self.rows("SELECT name FROM sweep")
        return str(name)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    made.write_catalog()
    yield made
    for child in made.running:
        if child.poll() is None:
            child.kill()
        child.communicate()


def finished(child: subprocess.Popen[str]) -> dict[str, str]:
    out, err = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 0, err
    said: dict[str, str] = json.loads(out)
    return said


def assert_every_case_once(place: Place) -> None:
    policy = load_policy("quick")
    by_case = place.rows(
        "SELECT case_id, count(*), count(DISTINCT ticket) FROM attempt WHERE kind = 'record' GROUP BY 1"
    )
    assert len(by_case) == WORKLOADS * len(policy.variants)
    assert {(n, tickets) for _, n, tickets in by_case} == {(1, 1)}
    engine = open_engine(str(place.database))
    with engine.connect() as db:
        row = queries.sweep(db)
        assert row.state == "done"
        assert planning.outstanding(db, row.id) == []
        settled = standings(db, row)
        by_sql = queries.reconciliation(db, row.id, row.plan_id)
    engine.dispose()
    assert by_sql == {"green": 2 * WORKLOADS, "eligible listing:gated": 3}
    assert sum(group.entries for group in settled.groups) == row.catalog.registered == 2 * WORKLOADS + 3


def test_a_driver_killed_half_way_twice_loses_nothing_and_does_nothing_twice(place: Place) -> None:
    first = place.start(stall=7)
    place.await_attempts(first, 14)
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert place.attempts() == 14
    name = place.name
    assert place.rows("SELECT state, summary FROM sweep") == [("running", None)]

    second = place.start(stall=9, resume=name)
    place.await_attempts(second, 14 + 18)
    intruder = place.start(resume=name)
    _, refused = intruder.communicate(timeout=PATIENCE_S)
    assert intruder.returncode != 0
    assert f"another sweep (process {second.pid})" in refused
    second.send_signal(signal.SIGKILL)
    second.wait()

    assert finished(place.start(resume=name)) == {"name": name, "state": "done"}
    assert_every_case_once(place)
    # Once more changes nothing.
    assert finished(place.start(resume=name))["state"] == "done"
    assert_every_case_once(place)


def test_an_interrupted_sweep_keeps_what_is_in_flight_and_goes_on_later(place: Place) -> None:
    child = place.start(pace=0.5)
    place.await_attempts(child, 2)
    child.send_signal(signal.SIGINT)
    said = finished(child)
    assert said["state"] == "interrupted"
    done = place.attempts()
    assert 2 <= done < 2 * WORKLOADS
    engine = open_engine(str(place.database))
    with engine.connect() as db:
        row = queries.sweep(db)
        assert row.state == "interrupted"
        assert len(planning.outstanding(db, row.id)) == 2 * WORKLOADS - done
        by_sql = queries.reconciliation(db, row.id, row.plan_id)
    engine.dispose()
    assert by_sql["green"] == done
    assert by_sql["builds not-run:interrupted"] == 2 * WORKLOADS - done
    assert finished(place.start(resume=said["name"])) == {"name": said["name"], "state": "done"}
    assert_every_case_once(place)
