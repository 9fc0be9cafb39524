"""The front door: the documented verbs are the real ones, `--help` is light, pipes may close."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from neuronqa import __version__
from neuronqa.cli.main import VERBS
from neuronqa.db.engine import head_revision, open_engine
from neuronqa.db.store import Store
from tests.builders import eligible, entries, open_sweep, record, save_plan, workload
from tests.unit.cli.conftest import Command

ROOT = Path(__file__).parents[3]
HEAVY = ("torch", "transformers", "ray", "sqlalchemy", "alembic", "numpy", "fastapi", "uvicorn", "jinja2")


def script(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "some.db"
    engine = open_engine(str(path), create=True)
    store = Store(engine)
    pool = [workload(f"w{n}") for n in range(3)]
    plan_id = save_plan(store, pool, entries([(eligible(w), 2, 5) for w in pool]))
    sweep_id = open_sweep(store, plan_id, name="20260101-000000-aaaa", budget_s=300.0)
    store.write(sweep_id, [record(w) for w in pool[:2]])
    engine.dispose()
    return path


def loaded_by(*arguments: str) -> list[str]:
    code = (
        "import json, sys\n"
        "from neuronqa.cli.main import run\n"
        "sys.argv[0] = 'neuronqa'\n"
        "try:\n"
        "    run()\n"
        "except SystemExit as left:\n"
        "    print(json.dumps([left.code, sorted({name.partition('.')[0] for name in sys.modules})]))\n"
    )
    done = script(code, *arguments)
    code_, modules = json.loads(done.stdout.splitlines()[-1])
    assert code_ == 0, done.stderr
    return [name for name in HEAVY if name in modules]


def test_help_imports_nothing_heavy() -> None:
    assert loaded_by("--help") == []


def test_a_sweeps_help_imports_nothing_heavy() -> None:
    assert loaded_by("sweep", "--help") == []


def test_readers_import_neither_torch_nor_transformers_nor_ray(database: Path) -> None:
    assert set(loaded_by("sweeps", "list", "--db", str(database))) <= {"sqlalchemy", "alembic"}


def test_the_driver_imports_neither_torch_nor_transformers_nor_ray() -> None:
    """Ray comes with the fleet, after everything that can be refused was looked at."""
    code = "import sys, neuronqa.sweep.run; print([n for n in ('torch', 'transformers', 'ray') if n in sys.modules])"
    assert script(code).stdout == "[]\n"


def test_every_verb_listed_is_a_module_with_an_app_and_every_module_with_an_app_is_listed() -> None:
    folder = ROOT / "neuronqa" / "cli"
    with_app = {path.stem for path in folder.glob("*.py") if re.search(r"^app = ", path.read_text(), re.MULTILINE)}
    verbs = {stem.rstrip("_"): stem for stem in with_app - {"main"}}
    assert set(verbs) == set(VERBS)
    for verb in VERBS:
        assert importlib.import_module(f"neuronqa.cli.{verbs[verb]}").app is not None


def test_the_verbs_in_the_readme_are_the_real_ones() -> None:
    section = (ROOT / "README.md").read_text("utf-8").partition("## Commands")[2].partition("\n## ")[0]
    documented = set(re.findall(r"neuronqa ([a-z]+)", section))
    assert documented == set(VERBS)


def test_every_exit_code_is_in_the_readme() -> None:
    from neuronqa.errors import ExitCode

    text = (ROOT / "README.md").read_text("utf-8")
    documented = {int(number) for number in re.findall(r"\b(\d+)\b", text.partition("Exit codes:")[2].split("\n\n")[0])}
    assert documented == {int(code) for code in ExitCode}


def test_help_lists_every_verb_and_each_has_help_of_its_own(neuronqa: Command) -> None:
    listed = neuronqa("--help")
    assert listed.code == 0
    for verb, line in VERBS.items():
        assert re.search(rf"^  {verb} +{re.escape(line)}$", listed.out, re.MULTILINE)
        own = neuronqa(verb, "--help")
        assert own.code == 0
        assert f"neuronqa {verb}" in own.out
        assert "--install-completion" not in own.out


def test_without_a_verb_help_is_shown_and_that_is_no_success(neuronqa: Command) -> None:
    said = neuronqa()
    assert said.code == 2
    assert said.out == ""
    assert "Commands:" in said.err


def test_the_version_is_printed(neuronqa: Command) -> None:
    said = neuronqa("--version")
    assert (said.code, said.out.strip()) == (0, __version__)


def test_sweeps_are_listed_and_shown_as_json(neuronqa: Command, database: Path) -> None:
    listed = json.loads(neuronqa("sweeps", "list", "--db", database, "--json").out)
    assert listed["schema_version"] == 1
    (row,) = listed["sweeps"]
    assert (row["name"], row["catalog"], row["source"], row["attempts"]) == (
        "20260101-000000-aaaa",
        "little",
        "synthetic",
        2,
    )
    shown = json.loads(neuronqa("sweeps", "show", "2026", "--db", database, "--json").out)
    assert shown["schema_version"] == 1
    assert shown["options"] == {"budget_s": 300.0}
    assert shown["attempts_by_kind"] == {"record": 2}
    assert (shown["registered"], shown["workloads"], shown["cases"], shown["cases_left"]) == (6, 2, 2, 0)
    assert shown["busy_s"] == 2.0


def test_sweeps_are_listed_and_shown_as_text(neuronqa: Command, database: Path) -> None:
    listed = neuronqa("sweeps", "list", "--db", database).out
    assert "20260101-000000-aaaa" in listed
    assert "synthetic" in listed
    assert "synthetic" in neuronqa("sweeps", "show", "--db", database).out


def test_the_database_is_brought_up_by_hand_and_again(neuronqa: Command, tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    for _ in range(2):
        said = neuronqa("db", "upgrade", "--db", path)
        assert said.code == 0
        assert said.out.split() == f"{path} is at schema {head_revision()}".split()


def test_the_doctor_names_what_is_wrong_and_says_so_by_its_exit_code(neuronqa: Command, tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("no database, that is for sure\n" * 100)
    said = neuronqa("doctor", "--db", text, "--json")
    report = json.loads(said.out)
    assert (said.code, report["fine"]) == (4, False)
    found = {check["what"]: check for check in report["checks"]}
    assert found["database"]["fine"] is False
    assert "not a database" in found["database"]["found"]
    assert found["database"]["advice"]
    assert found["torch"]["fine"] is True


def test_the_doctor_misses_a_compiler(neuronqa: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/nowhere/c++")
    said = neuronqa("doctor", "--db", tmp_path / "x.db", "--json")
    found = {check["what"]: check for check in json.loads(said.out)["checks"]}
    assert said.code == 4
    assert found["C++ compiler"] == {
        "what": "C++ compiler",
        "fine": False,
        "found": "no /nowhere/c++",
        "advice": "install g++",
    }


def test_the_doctor_finds_this_machine_fit_and_makes_nothing(neuronqa: Command, tmp_path: Path) -> None:
    said = neuronqa("doctor", "--db", tmp_path / "x.db")
    assert said.code == 0, said.out
    assert "will be made" in said.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [("sweeps", "list"), ("sweeps", "list", "--json")])
def test_a_reader_that_has_gone_changes_nothing_about_the_exit_code(database: Path, arguments: tuple[str, ...]) -> None:
    code = "import sys, time; sys.stdin.readline(); from neuronqa.cli.main import run; run()"
    child = subprocess.Popen(
        [sys.executable, "-c", code, *arguments, "--db", str(database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert child.stdout is not None
    child.stdout.close()
    assert child.stdin is not None
    assert child.stderr is not None
    child.stdin.write("go\n")
    child.stdin.close()
    said = child.stderr.read()
    assert (child.wait(), said) == (0, "")
