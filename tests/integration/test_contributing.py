"""The walkthroughs of CONTRIBUTING.md do what they say, on a copy of the tree, with at most two files each."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECTION = re.compile(r"^### (?P<title>Add a .+)$\n(?P<body>(?:(?!^##).*\n?)*)", re.MULTILINE)
BLOCK = re.compile(r"^```(?P<kind>\w+)(?: file=(?P<file>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def sections() -> dict[str, str]:
    return {match["title"]: match["body"] for match in SECTION.finditer((ROOT / "CONTRIBUTING.md").read_text("utf-8"))}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("neuronqa", "catalogs", "workers", "db", "dashboards"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def run(arguments: list[str], tree: Path, text: str = "") -> None:
    environment = {**os.environ, "PYTHONPATH": str(tree), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(arguments, input=text, capture_output=True, text=True, cwd=tree, env=environment)
    assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("title", sections())
def test_a_walkthrough_works_as_written(title: str, tree: Path) -> None:
    touched = set()
    commands = 0
    for block in BLOCK.finditer(sections()[title]):
        match block["kind"]:
            case "sh":
                run(["sh", "-eu"], tree, block["text"])
                commands += 1
            case "diff":
                run(["patch", "-p1", "--no-backup-if-mismatch"], tree, block["text"])
                touched |= set(re.findall(r"^\+\+\+ b/(\S+)$", block["text"], re.MULTILINE))
            case _:
                (tree / block["file"]).write_text(block["text"], "utf-8")
                touched.add(block["file"])
    assert commands, "a walkthrough that runs nothing shows nothing"
    assert 1 <= len(touched) <= 2


def test_there_is_a_walkthrough_for_a_check_a_recipe_and_a_profile() -> None:
    assert {"Add a check", "Add a recipe", "Add a device profile"} <= set(sections())
