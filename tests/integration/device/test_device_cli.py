"""`neuronqa device` as a person types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from neuronqa.errors import ExitCode


def neuronqa(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from neuronqa.cli.main import run; run()", "device", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def answer(*arguments: str) -> dict[str, Any]:
    finished = neuronqa(*arguments, "--json")
    assert finished.returncode == 0, finished.stderr
    told: dict[str, Any] = json.loads(finished.stdout)
    assert told["schema_version"] == 1
    return told


def test_info_tells_what_a_profile_is() -> None:
    told = answer("info")
    assert told["profile"] == "trn2-sdk2.33"
    assert told["native"] == 396
    assert "ideal" in told["profiles"]
    assert told["build"]["profile_sha256"] == told["sha256"]


def test_ops_tells_where_an_operator_runs_per_dtype() -> None:
    (row,) = answer("ops", "mm")["ops"]
    assert row["op"] == "aten::mm"
    assert row["eager"]["float32"] == "native"
    assert row["eager"]["int32"] == "cpu: recovered (NCC_EVRF035)"
    assert row["graph"]["int32"] == "refused: NCC_EVRF035"
    (maximum,) = answer("ops", "aten::maximum")["ops"]
    assert set(maximum["eager"].values()) == {"cpu: no kernel"}
    assert maximum["graph"]["float32"] == "native"


def test_ops_tells_how_two_profiles_differ() -> None:
    rows = {row["op"]: row for row in answer("ops", "--diff", "trn2-beta-2026-04")["ops"]}
    assert rows["aten::mm"]["eager"]["int32"] == (
        "cpu: recovered (NCC_EVRF035) -> cpu: arguments (integer matrix multiplication is not supported)"
    )
    assert rows["aten::maximum"]["eager"] == {}
    assert answer("ops", "--diff", "trn2-sdk2.33")["ops"] == []


def test_build_finds_the_device() -> None:
    told = answer("build")
    assert Path(told["path"]).is_file()


@pytest.mark.parametrize("name", ["ideal", "trn2-beta-2026-04", "trn2-sdk2.33"])
def test_bundled_profiles_are_without_problems(name: str) -> None:
    finished = neuronqa("lint", f"catalogs/devices/{name}.toml")
    assert (finished.returncode, finished.stdout) == (0, "")


def test_lint_names_the_line_of_what_leaves_the_device(tmp_path: Path) -> None:
    overlay = tmp_path / "overlay.py"
    overlay.write_text(
        "import os\nimport torch\nfrom neuronqa.device.neuron.overlay import kernel\n\n\n"
        '@kernel("aten::maximum")\ndef maximum(a, b):\n    return a.cpu()\n'
    )
    finished = neuronqa("lint", str(overlay), "--json")
    problems = json.loads(finished.stdout)["problems"]
    assert finished.returncode == int(ExitCode.BAD_INPUT)
    assert [problem["line"] for problem in problems] == [1, 8]
    overlay.write_text(overlay.read_text().replace("import os\n", "").replace("a.cpu()", "torch.where(a > b, a, b)"))
    assert neuronqa("lint", str(overlay)).returncode == 0


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("mine.toml", "schema = 1", "incomplete or malformed"),
        ("mine.py", "x = 1", "no @kernel function"),
        ("mine.py", '@kernel("aten::nothing")\ndef f(a):\n    return a\n', "raises NameError"),
        ("mine.txt", "", "only profiles"),
    ],
)
def test_lint_says_what_is_wrong(name: str, text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    finished = neuronqa("lint", str(path))
    assert finished.returncode == int(ExitCode.BAD_INPUT)
    assert words in finished.stdout + finished.stderr
    assert "Traceback" not in finished.stdout + finished.stderr


@pytest.mark.parametrize("arguments", [("info", "--profile", "trn9"), ("ops", "--profile", "nowhere.toml")])
def test_an_unknown_profile_is_one_line(arguments: tuple[str, ...]) -> None:
    finished = neuronqa(*arguments)
    assert finished.returncode == int(ExitCode.BAD_INPUT)
    assert len(finished.stderr.splitlines()) == 1


def test_selftest_counts_behaviours_and_operators() -> None:
    told = answer("selftest", "--ops", "add,mm", "--dtypes", "float32", "--behaviours", "copies_*")
    assert told["ops"] == {"passed": 2, "explained": 0, "unexplained": 0, "crashed": 0, "skipped": 0}
    assert told["behaviours"] == {"passed": 1, "failed": 0}
