"""The three examples of docs/your-model.md do what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from neuronqa.cli.main import VERBS

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "your-model.md").read_text("utf-8")
SECTION = re.compile(r"^## (?P<title>A .+)$\n(?P<body>(?:(?!^## ).*\n?)*)", re.MULTILINE)
BLOCK = re.compile(r"^```(?P<kind>\w+)(?: file=(?P<file>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = {match["title"]: match["body"] for match in SECTION.finditer(TEXT)}
ENTRY = "import sys\nfrom neuronqa.cli.main import run\nsys.argv[0] = 'neuronqa'\nrun()\n"


def folder_with(files: dict[str, str], folder: Path) -> Path:
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    return folder


def run(command: str, folder: Path) -> str:
    """Run a documented command with this tree's neuronqa, and without whatever is installed."""
    (folder / "neuronqa_cli.py").write_text(ENTRY)
    python = sys.executable
    words = command.strip().split()
    known = {
        "neuronqa": [python, "neuronqa_cli.py"],
        "python": [python],
        "pytest": [python, "-m", "pytest", "-p", "neuronqa.checkup.plugin", "-p", "no:cacheprovider"],
    }
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "COLUMNS": "120",
    }
    done = subprocess.run(
        [*known[words[0]], *words[1:]], cwd=folder, capture_output=True, text=True, env=environment, timeout=300
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return f"{done.returncode}\n{done.stdout}\n{done.stderr}"


def test_there_are_three_examples() -> None:
    assert len(EXAMPLES) == 3
    assert "check" in VERBS


@pytest.mark.full
@pytest.mark.parametrize("title", EXAMPLES)
def test_an_example_does_what_it_says(title: str, tmp_path: Path) -> None:
    blocks = list(BLOCK.finditer(EXAMPLES[title]))
    folder_with({block["file"]: block["text"] for block in blocks if block["file"]}, tmp_path)
    (command,) = [block["text"] for block in blocks if block["kind"] == "sh"]
    said = run(command, tmp_path)
    shown = [line for block in blocks if block["kind"] == "text" for line in block["text"].splitlines()]
    assert said.startswith("1" if shown else "0"), said
    for line in shown:
        assert line.strip().replace("mine.py:", "") in said.replace(f"{tmp_path}/mine.py:", ""), said
