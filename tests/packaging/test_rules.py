"""The rules of the house, as tests: layers, lint, types, and functions that fit a screen."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONGEST_FILE = 500
LONGEST_FUNCTION = 60
TABLES = {("neuronqa/domain/outcome.py", "rules")}
"""One `match` on purpose: mypy proves it exhaustive."""


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)


def passes(*command: str) -> None:
    done = run(*command)
    if done.returncode != 0:
        pytest.fail((done.stdout + done.stderr)[-4000:], pytrace=False)


def test_imports_keep_to_the_layers() -> None:
    passes("-c", "from importlinter.cli import lint_imports; raise SystemExit(lint_imports())")


@pytest.mark.parametrize("arguments", [("check",), ("format", "--check")], ids=lambda a: a[0])
def test_the_code_is_clean_and_formatted(arguments: tuple[str, ...]) -> None:
    passes("-m", "ruff", *arguments, ".")


def test_the_types_are_right() -> None:
    passes("-m", "mypy")


def test_mypy_demands_exhaustive_matches(tmp_path: Path) -> None:
    """A kind of outcome that is not decided must not type-check."""
    undecided = tmp_path / "undecided.py"
    undecided.write_text(
        "from neuronqa.domain.outcome import Standing\n"
        "def worth(standing: Standing) -> int:\n"
        "    match standing:\n"
        "        case Standing.PASS:\n"
        "            return 1\n"
        "        case Standing.FAIL:\n"
        "            return 0\n"
    )
    done = run("-m", "mypy", str(undecided))
    assert done.returncode == 1
    assert "exhaustive-match" in done.stdout


def sources() -> Iterator[Path]:
    yield from sorted((ROOT / "neuronqa").rglob("*.py"))


def test_no_file_is_longer_than_one_can_hold_in_mind() -> None:
    long = {str(path.relative_to(ROOT)): n for path in sources() if (n := path.read_text().count("\n")) > LONGEST_FILE}
    assert long == {}


def test_no_functions_body_is_longer_than_a_screen() -> None:
    long = []
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.body[0].lineno + 1
                name = (str(path.relative_to(ROOT)), node.name)
                if lines > LONGEST_FUNCTION and name not in TABLES:
                    long.append((*name, lines))
    assert long == []


@pytest.mark.parametrize("name", ["catalogs", "workers", "db", "dashboards"])
def test_a_top_folder_is_no_package(name: str) -> None:
    assert (ROOT / name).is_dir()
    assert list((ROOT / name).rglob("__init__.py")) == []


def test_nothing_is_skipped_or_left_to_be_done() -> None:
    words = ("TO" + "DO", "FIX" + "ME", "pytest.mark." + "skip(", "pytest.mark." + "xfail")
    found = [
        f"{path.relative_to(ROOT)}: {word}"
        for folder in ("neuronqa", "tests", "catalogs", "db", "dashboards")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".py", ".toml", ".html", ".css", ".cpp", ".h")
        for word in words
        if word in path.read_text(errors="replace")
    ]
    assert found == []
