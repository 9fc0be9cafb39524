"""The mini catalog under a real sweep: each workload gets exactly the outcome its name says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from neuronqa import catalog
from neuronqa.catalog.expectations import expects_listing, surprises
from neuronqa.db import queries
from neuronqa.db import tables as t
from neuronqa.db.engine import open_engine
from neuronqa.domain.case import Variant
from neuronqa.domain.catalog import Entry
from neuronqa.domain.outcome import Check, Outcome
from neuronqa.domain.workload import Workload

ROOT = Path(__file__).parents[2]
ENTRIES = list(catalog.open("mini").entries())
EXECUTED = [entry for entry in ENTRIES if entry.workload is not None]
AUTOLOADED = """
from neuronqa.device.neuron.autoload import load
load()
import runpy, sys
runpy.run_path(sys.argv[1], run_name="__main__")
"""
"""As torch does by itself where the package is installed."""
Findings = Mapping[tuple[Variant, Check], Outcome]


@dataclass(frozen=True)
class Swept:
    """What a finished sweep says, in its JSON and in its database."""

    url: str
    told: Mapping[str, Any]
    findings: Mapping[str, Findings]
    listings: Mapping[str, Outcome]


def neuronqa(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from neuronqa.cli.main import run; run()", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    url = f"sqlite:///{tmp_path_factory.mktemp('mini') / 'mini.db'}"
    arguments = ["sweep", "--catalog", "mini", "--policy", "gating", "--db", url, "--json"]
    done = neuronqa(*arguments)
    assert done.returncode == 0, done.stderr[-3000:]
    with open_engine(url).connect() as db:
        row = queries.sweep(db)
        listed = select(t.entry.c.name, t.plan_group.c.listing).join(
            t.plan_group, t.plan_group.c.id == t.entry.c.group_id
        )
        return Swept(
            url=url,
            told=json.loads(done.stdout),
            findings=queries.findings(db, row.id),
            listings={one.name: Outcome.parse(one.listing) for one in db.execute(listed)},
        )


def test_every_entry_is_registered_and_every_workload_is_complete(swept: Swept) -> None:
    assert swept.told["catalog"]["registered"] == len(ENTRIES)
    assert sum(swept.told["entries"].values()) == len(ENTRIES)
    assert swept.told["workloads"]["complete"] >= len(EXECUTED)


@pytest.mark.parametrize("entry", EXECUTED, ids=lambda entry: entry.id)
def test_a_workload_gets_the_outcome_its_name_says(swept: Swept, entry: Entry) -> None:
    assert entry.workload is not None
    found = swept.findings[Workload.from_json(entry.workload).hash]
    assert {str(variant) for variant, _ in found} == {"eager/fp32/train", "compile/fp32/train", "eager/bf16/train"}
    assert not list(surprises(entry, ((variant, check, outcome) for (variant, check), outcome in found.items())))


@pytest.mark.parametrize("entry", EXECUTED, ids=lambda entry: entry.id)
def test_what_is_expected_of_a_workload_is_found(swept: Swept, entry: Entry) -> None:
    """No expectation is idle: each names a check that was answered so at least once."""
    assert entry.workload is not None
    found = swept.findings[Workload.from_json(entry.workload).hash]
    texts = {str(outcome) for outcome in found.values()}
    assert set(entry.expected.values()) <= texts


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_an_entry_is_listed_as_its_name_says(swept: Swept, entry: Entry) -> None:
    assert expects_listing(entry, swept.listings[entry.id])


def test_healthy_workloads_are_green(swept: Swept) -> None:
    healthy = [entry for entry in ENTRIES if "/healthy-" in entry.id]
    assert len(healthy) >= 7
    assert swept.told["entries"]["green"] >= len(healthy)


def reproduced(swept: Swept, cluster: str, folder: Path) -> dict[str, Any]:
    done = neuronqa("repro", cluster, "--db", swept.url, "--output", str(folder), "--run", "--json")
    assert done.returncode in (0, 1), done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def failing_clusters(swept: Swept, kind: str = "") -> list[str]:
    """Those whose cases ran on the device."""
    listed = json.loads(neuronqa("triage", "list", "--db", swept.url, "--limit", "100", "--json").stdout)
    kept = [one for one in listed["causes"] if not one["outcome"].startswith(("build:", "inputs:", "reference:"))]
    return [str(one["cluster"]) for one in kept if one["outcome"].startswith(kind)]


@pytest.mark.full
def test_a_fallback_is_shown_by_a_script_of_its_operator_alone(swept: Swept, tmp_path: Path) -> None:
    told = reproduced(swept, failing_clusters(swept, "fallback:no-kernel")[0], tmp_path / "repro")
    assert (told["grain"], told["same"], told["again"]["same"]) == ("operator", True, True)
    assert sorted(file.name for file in (tmp_path / "repro").iterdir()) == ["about.json", "operator.pt", "repro.py"]
    alone = subprocess.run(
        [sys.executable, "-c", AUTOLOADED, str(tmp_path / "repro" / "repro.py")],
        env={**os.environ, "PYTHONPATH": str(ROOT), "NEURONQA_PROFILE": told["profile"]},
        capture_output=True,
        text=True,
    )
    operator = told["outcome"].partition("(")[2].partition(" ")[0]
    assert f"ran on the CPU: ['{operator}" in alone.stdout, alone.stderr


@pytest.mark.full
def test_nine_of_ten_causes_are_shown_by_a_short_script(swept: Swept, tmp_path: Path) -> None:
    named = failing_clusters(swept)
    told = [reproduced(swept, one, tmp_path / one) for one in named]
    missed = [one["outcome"] for one in told if not one["again"]["same"]]
    assert len(missed) <= 0.1 * len(told), missed
    assert sorted(one["lines"] for one in told)[len(told) // 2] <= 40
