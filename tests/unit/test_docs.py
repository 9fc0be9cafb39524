"""What the docs say is what the code says."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from neuronqa.cli.main import _MODULES, VERBS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["outcomes", "faults"])
def test_a_table_in_the_docs_is_printed_from_the_code(page: str) -> None:
    script = f"docs/{page}.py"
    printed = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}
    )
    assert printed.returncode == 0, printed.stderr
    written = (ROOT / f"docs/{page}.md").read_text("utf-8")
    assert printed.stdout == written, f"accept with: python {script} > docs/{page}.md"


SAID = re.compile(r"(?:`|\">|^|&& )neuronqa ([a-z]+)(?: ([a-z]+)(?=[ `\n<]))?", re.MULTILINE)
"""A command as docs, pages and hints print it, and not the name of the project in a sentence."""


def test_every_command_that_is_printed_anywhere_exists() -> None:
    files = [
        ROOT / "README.md",
        *(path for top in ("docs", "dashboards", "neuronqa") for path in (ROOT / top).rglob("*")),
    ]
    said = {
        (verb, sub, path.name)
        for path in files
        if path.suffix in (".md", ".html", ".py")
        for verb, sub in SAID.findall(path.read_text("utf-8"))
    }
    assert len(said) > 40
    known = {verb: _subcommands(verb) for verb in VERBS}
    wrong = [one for one in said if one[0] not in known or (known[one[0]] and one[1] not in {"", *known[one[0]]})]
    assert wrong == []


def _subcommands(verb: str) -> set[str]:
    """Empty for a verb that has none."""
    command = get_command(import_module(f"neuronqa.cli.{_MODULES.get(verb, verb)}").app)
    return set(command.commands) if isinstance(command, TyperGroup) else set()
