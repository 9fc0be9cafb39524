"""`neuronqa sweep` from the command line to the report and the exit code, with scripted workers."""

from __future__ import annotations

import gzip
import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from neuronqa.catalog.snapshot import SnapshotWriter
from neuronqa.db import tables as t
from neuronqa.db.engine import open_engine
from neuronqa.domain.build import BuildOrder, Prepared
from neuronqa.domain.catalog import Entry, Source
from neuronqa.domain.job import Job, JobResult
from neuronqa.domain.outcome import Check, Kind
from neuronqa.sweep import controls, local_fleet
from neuronqa.sweep import run as run_module
from neuronqa.sweep.fleet import Fleet
from neuronqa.sweep.request import SweepRequest
from tests.builders import EAGER, failed, result, vector
from tests.scripted import Script, ScriptedFleet, all_pass
from tests.unit.cli.conftest import Command

KEYS: dict[str, set[str]] = {
    "catalog": {"name", "source", "sha256", "registered"},
    "policy": {"name", "sha256"},
    "device": {"name", "profile", "build"},
    "controls": {"planted", "judged", "caught"},
    "workloads": {"planned", "executed", "complete", "inherited"},
}
"""What the published JSON holds at least, below its own keys."""

Sweep = Callable[..., Any]
BUNDLED = controls.load_controls
HARMFUL = set("\x1b\u202e\x07")


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    """Six workloads under two ids each, and two entries nothing can be run for."""
    lines = ['schema_version = 1\nname = "little"\nsource = "file"']
    lines += [
        f'[[entry]]\nid = "little/{n}{twin}"\nfactory = "models.py:make"\nseed = {n}\ndownloads = {10 - n}'
        for n in range(6)
        for twin in "ab"
    ]
    lines += [f'[[entry]]\nid = "little/gated{n}"\nabsence = "gated"' for n in range(2)]
    folder = tmp_path / "catalog"
    folder.mkdir()
    (folder / "catalog.toml").write_text("\n".join(lines))
    (folder / "models.py").write_text("def make():\n    raise NotImplementedError\n")
    return folder


@pytest.fixture
def sweep(neuronqa: Command, catalog: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    def ready(order: BuildOrder) -> Prepared:
        return Prepared(order=order, vector=vector(), seconds=0.0)

    monkeypatch.setattr(run_module, "prepare", ready)
    monkeypatch.setattr(controls, "load_controls", lambda *_: [])

    def run(
        *arguments: object, script: Script = all_pass, on_wait: Callable[[], None] = lambda: None, resume: str = ""
    ) -> Any:
        @contextmanager
        def fleet(_request: SweepRequest, _prepared: Prepared, *, private: bool) -> Iterator[Fleet]:
            assert private, "a file is no reason to stay in the network"
            made = ScriptedFleet(script)
            made.on_wait = on_wait
            yield made

        monkeypatch.setattr(local_fleet, "local_fleet", fleet)
        what = ("--resume", resume) if resume else ("--catalog", catalog, "--policy", "quick")
        return neuronqa("sweep", *what, "--db", tmp_path / "s.db", *arguments)

    return run


def some_wrong(job: Job, _before: int) -> JobResult | str:
    """Two of the six workloads are wrong on the device."""
    spec = job.workload.spec
    wrong = {EAGER: failed(EAGER, Check.PARITY, Kind.PARITY_NAN, "aten::mm")}
    return result(job, wrong if spec.seed < 2 else {})


def test_the_json_of_a_sweep_holds_what_is_published(sweep: Sweep) -> None:
    said = sweep("--json", script=some_wrong)
    assert said.code == 0, said.err
    report = json.loads(said.out)
    assert report["schema_version"] == 1
    for key, inner in KEYS.items():
        assert inner <= set(report[key]), key
    assert {"attempts", "busy_s", "wall_s", "cores", "database", "flattering"} <= set(report)
    assert report["catalog"]["registered"] == 14
    assert report["catalog"]["source"] == "file"
    assert sum(report["entries"].values()) == 14
    assert report["entries"] == {"green": 8, "parity parity:nan": 4, "eligible listing:gated": 2}
    for rung, gate in report["gates"].items():
        assert gate["passed"] + gate["failed"] + gate["not_run"] == gate["registered"] == 14, rung
        assert 0 <= gate["low"] <= gate["high"] <= 1
    assert report["gates"]["trains"] == {
        "passed": 8,
        "failed": 6,
        "not_run": 0,
        "registered": 14,
        "low": 8 / 14,
        "high": 8 / 14,
    }
    assert {"planned": 6, "executed": 6, "complete": 6, "inherited": 0}.items() <= report["workloads"].items()
    assert report["attempts"] == 12


@pytest.mark.parametrize(
    ("gate", "code"), [("green>=50%", 0), ("green>=60%", 1), ("runs>=80%,green>=57%", 0), ("runs>=80%,parity>=99%", 1)]
)
def test_a_gate_decides_the_exit_code(sweep: Sweep, gate: str, code: int) -> None:
    said = sweep("--gate", gate, script=some_wrong)
    assert said.code == code
    assert f"gate {gate}" in said.err


def test_a_gate_cannot_tell_where_too_little_was_run(sweep: Sweep) -> None:
    assert sweep("--limit", 1, "--gate", "green>=50%").code == 5
    assert sweep("--mode", "eager", "--gate", "green>=50%").code == 5
    assert sweep("--limit", 1, "--gate", "green>=99%").code == 1


def test_a_missed_control_withholds_the_rate_and_the_gate_cannot_tell(
    sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bundled controls, on workers that call everything good."""
    monkeypatch.setattr(controls, "load_controls", BUNDLED)
    said = sweep("--json", "--gate", "green>=1%")
    assert said.code == 5
    report = json.loads(said.out)
    assert 0 < report["controls"]["caught"] < report["controls"]["planted"]
    assert report["gates"]["eligible"]["low"] == 12 / 14
    assert report["gates"]["trains"]["low"] is None
    assert report["gates"]["trains"]["passed"] == 12


def test_an_interrupt_keeps_what_was_done_and_leaves_130(sweep: Sweep) -> None:
    waits = iter(range(999))

    def interrupt() -> None:
        if next(waits) == 1:
            os.kill(os.getpid(), signal.SIGINT)

    said = sweep("--json", on_wait=interrupt)
    assert said.code == 130
    report = json.loads(said.out)
    assert report["state"] == "interrupted"
    assert 0 < report["workloads"]["executed"] < 6
    assert sum(report["entries"].values()) == 14
    resumed = sweep("--json", resume=report["sweep"])
    assert resumed.code == 0
    assert json.loads(resumed.out)["entries"] == {"green": 12, "eligible listing:gated": 2}


def test_a_resumed_sweep_is_gated_by_its_own_policy(sweep: Sweep) -> None:
    name = json.loads(sweep("--json").out)["sweep"]
    assert sweep("--gate", "green>=50%", resume=name).code == 0
    assert sweep("--gate", "green>=99%", resume=name).code == 1


def test_a_selection_is_a_catalog_of_its_own(sweep: Sweep) -> None:
    report = json.loads(sweep("--json", "--select", "top-4").out)
    assert report["catalog"]["name"] == "little[top-4]"
    assert report["catalog"]["registered"] == sum(report["entries"].values()) == 4


def test_the_same_catalog_is_planned_once(sweep: Sweep) -> None:
    first, second = (json.loads(sweep("--json").out) for _ in range(2))
    assert first["sweep"] != second["sweep"]
    assert first["catalog"] == second["catalog"]
    assert first["entries"] == second["entries"]


def test_text_says_what_a_person_must_know(sweep: Sweep) -> None:
    said = sweep(script=some_wrong)
    assert said.code == 0
    for words in ("shrunken, randomly initialised", "source: file", "parity:nan", "neuronqa triage list"):
        assert words in said.out
    assert said.err.count("\n") >= 3


def test_what_a_sweep_said_selects_what_the_next_one_runs(sweep: Sweep, neuronqa: Command, tmp_path: Path) -> None:
    first = json.loads(sweep("--json", script=some_wrong).out)
    again = json.loads(sweep("--json", "--fresh", "--select", f"failed:{first['sweep']}").out)
    assert again["catalog"]["name"] == f"little[failed:{first['sweep']}]"
    assert again["entries"] == {"green": 4}
    causes = json.loads(neuronqa("triage", "list", first["sweep"], "--db", tmp_path / "s.db", "--json").out)["causes"]
    chosen = f"cluster:{causes[0]['key']},id:*a|failed:{again['sweep']}"
    third = json.loads(sweep("--json", "--select", chosen).out)
    assert third["catalog"]["registered"] == 2


@pytest.mark.parametrize(
    ("expression", "words"), [("failed:nobody", "no sweep called"), ("cluster:ck1:0000", "there is no cluster")]
)
def test_a_result_nobody_found_is_bad_input(sweep: Sweep, expression: str, words: str) -> None:
    assert sweep().code == 0
    said = sweep("--select", expression)
    assert said.code == 3
    assert words in said.err


def test_results_are_looked_for_in_a_database_that_is_there(neuronqa: Command, catalog: Path, tmp_path: Path) -> None:
    said = neuronqa("catalog", "show", f"{catalog}[failed:one]", "--db", tmp_path / "absent.db")
    assert said.code == 3
    assert "absent.db" in said.err
    assert not (tmp_path / "absent.db").exists()


def test_a_corrupt_shard_stops_before_the_sweep_starts(sweep: Sweep, neuronqa: Command, tmp_path: Path) -> None:
    """It names file and line, no job is handed out, and no sweep is registered."""
    folder = tmp_path / "large"
    folder.mkdir()
    with SnapshotWriter(folder, "large", Source.FILE, made_by={}) as writer:
        for rank in range(1, 5_200):
            writer.add(Entry(id=f"a/{rank}", rank=rank, downloads=0, absence="gated"))
    shard = folder / "models-00001.jsonl.gz"
    lines = gzip.decompress(shard.read_bytes()).splitlines(keepends=True)
    lines[141] = lines[141].replace(b"5142", b"5143")
    shard.write_bytes(gzip.compress(b"".join(lines)))

    def handed_out(job: Job, before: int) -> JobResult | str:
        raise AssertionError(f"{job} was handed out, {before}")

    said = sweep("--catalog", folder, script=handed_out)
    assert said.code == 3
    assert f"{shard}, line 142" in said.err.splitlines()[-1]
    assert neuronqa("sweeps", "show", "--db", tmp_path / "s.db").code == 3, "there is no sweep"


def test_hostile_ids_reach_no_terminal_and_no_path(sweep: Sweep, neuronqa: Command, tmp_path: Path) -> None:
    """Ids a catalog may hold: they are data in the database, and nothing else anywhere."""
    ids = (
        "\x1b[2J\u202eevil\x07",
        "../../../escape/evil",
        "[red]evil[/red]",
        "<script>evil()</script>",
        "evil" * 2_500,
    )
    folder = tmp_path / "hostile"
    folder.mkdir()
    lines = ['schema_version = 1\nname = "hostile"\nsource = "file"']
    for seed, name in enumerate(ids):
        lines.append(f'[[entry]]\nid = {json.dumps(name)}\nfactory = "models.py:make"\nseed = {seed}')
    (folder / "catalog.toml").write_text("\n".join(lines))
    (folder / "models.py").write_text("def make():\n    raise NotImplementedError\n")
    first = sweep("--catalog", folder, "--select", "id:*evil*", script=some_wrong)
    assert first.code == 0, first.err
    db = ("--db", tmp_path / "s.db")
    said = [first, neuronqa("catalog", "show", folder), neuronqa("catalog", "plan", folder)]
    said += [neuronqa(*verb, *db) for verb in (("report",), ("triage", "list"), ("sweeps", "list"), ("sweeps", "show"))]
    for one in said:
        assert one.code == 0, one.err
        assert not HARMFUL & set(one.out + one.err)
    engine = open_engine(str(tmp_path / "s.db"))
    with engine.connect() as connection:
        assert sorted(connection.execute(select(t.entry.c.name)).scalars()) == sorted(ids)
    assert not [path for path in tmp_path.rglob("*") if "evil" in path.name]
    assert not (tmp_path.parent / "escape").exists()
