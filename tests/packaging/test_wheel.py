"""The wheel: one top-level name, every file that ships, and it works from an empty folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from neuronqa.bundled import FOLDERS

ROOT = Path(__file__).parents[2]


def tracked(folder: str) -> set[str]:
    """What git knows below `folder`; without git, what lies there."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", folder], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode == 0:
        return {line for line in listed.stdout.splitlines() if (ROOT / line).is_file()}
    found = (path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(ROOT)) for path in found}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = ["pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--quiet", "-w", str(out), str(ROOT)]
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment that holds the wheel and borrows its dependencies from this one."""
    base = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(base)], check=True)
    command = ["pip", "--python", str(base), "install", "--no-deps", "--no-index", "--quiet", str(wheel)]
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (site,) = base.glob("lib/python*/site-packages")
    # A path that comes from a .pth file is not searched for further .pth files, so no editable neuronqa gets in.
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return base


def call(installed: Path, program: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NEURONQA"))}
    environment = {**kept, "NEURONQA_CACHE": str(cwd.parent / "cache")}
    return subprocess.run(
        [str(installed / "bin" / program), *arguments], cwd=cwd, env=environment, capture_output=True, text=True
    )


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


def test_the_only_top_level_name_is_neuronqa(wheel: Path) -> None:
    names = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"neuronqa"}


def test_every_file_of_the_package_and_the_four_folders_is_in_it_and_no_litter(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    missing = tracked("neuronqa") - names
    for folder in FOLDERS:
        missing |= {f"neuronqa/_bundled/{name}" for name in tracked(folder)} - names
    assert missing == set()
    assert not [name for name in names if "__pycache__" in name or name.endswith((".pyc", ".db", ".o", ".so"))]


def test_it_runs_from_an_empty_folder_and_is_the_wheels(installed: Path, empty: Path) -> None:
    where = call(installed, "python", "-c", "import neuronqa; print(neuronqa.__file__)", cwd=empty)
    assert where.stdout.startswith(str(installed)), where.stderr
    examined = call(installed, "neuronqa", "doctor", "--json", cwd=empty)
    found = {check["what"]: check for check in json.loads(examined.stdout)["checks"]}
    assert found["bundled files"]["fine"] is True
    assert found["bundled files"]["found"] == "catalogs, workers, db, dashboards"
    assert list(empty.iterdir()) == []


def test_it_migrates_a_database_and_reads_it(installed: Path, empty: Path) -> None:
    assert call(installed, "neuronqa", "sweeps", "list", cwd=empty).returncode == 3
    upgraded = call(installed, "neuronqa", "db", "upgrade", cwd=empty)
    assert upgraded.returncode == 0, upgraded.stderr
    assert (empty / "neuronqa.db").exists()
    listed = call(installed, "neuronqa", "sweeps", "list", "--json", cwd=empty)
    assert json.loads(listed.stdout) == {"schema_version": 1, "sweeps": []}


def test_the_command_line_says_what_is_wrong_there_too(installed: Path, empty: Path) -> None:
    said = call(installed, "neuronqa", "sweep", "--catalog", "nonsense", cwd=empty)
    assert said.returncode == 3
    assert said.stderr.count("\n") == 1
    assert "Traceback" not in said.stderr
