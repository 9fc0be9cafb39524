"""The reference agent works items off, and programs it starts get a bundle and nothing else of ours."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine

from neuronqa.db import fixes
from neuronqa.domain.fix import ItemState
from neuronqa.errors import BadInput
from neuronqa.fixqueue.agent import CommandSolver, Did, Proposal, work
from neuronqa.fixqueue.service import FixQueue
from tests.queued import OPERATORS, OVERLAY, plan, queue_over, swept

PROGRAM = """
import os, pathlib
here = pathlib.Path(".")
assert "NEURONQA_LEASE" not in os.environ and "NEURONQA_DB" not in os.environ
text = (here / "bundle.md").read_text()
assert (here / "repro.py").exists() and "aten::" in text
if "aten::one" in text:
    (here / "overlay.py").write_text(OVERLAY.format(operator="aten::one"))
else:
    (here / "abstain.txt").write_text("it sorts")
"""


@pytest.fixture
def queue(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FixQueue:
    swept(engine, plan(engine), "20261201-000000-0000", OPERATORS)
    made = queue_over(engine, tmp_path / "home", monkeypatch)
    made.fill(None, "sweep")
    return made


def program(tmp_path: Path, text: str) -> CommandSolver:
    path = tmp_path / "program.py"
    path.write_text(f"OVERLAY = {OVERLAY!r}\n{text}")
    return CommandSolver.of(f"{sys.executable} {path}", 30.0)


def test_a_program_hands_in_or_abstains(
    queue: FixQueue, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURONQA_LEASE", "secret")
    monkeypatch.setenv("NEURONQA_DB", "secret")
    done = work(queue, program(tmp_path, PROGRAM), "ada", 10)
    assert {one.did for one in done} == {Did.SUBMITTED, Did.ABSTAINED}
    assert [one.note for one in done if one.did is Did.ABSTAINED] == ["it sorts"]
    with engine.connect() as db:
        states = {one.operator: one.state for one in fixes.items(db)}
    assert states == {"aten::one": ItemState.SUBMITTED, "aten::two": ItemState.QUEUED}


@pytest.mark.parametrize("text", ["raise SystemExit(3)", "import os; os.symlink('/etc/passwd', 'overlay.py')"])
def test_a_program_that_leaves_nothing_gives_its_item_back(queue: FixQueue, tmp_path: Path, text: str) -> None:
    assert {one.did for one in work(queue, program(tmp_path, text), "ada", 1)} == {Did.RELEASED}


def test_a_program_that_does_not_end_is_ended(queue: FixQueue, tmp_path: Path) -> None:
    slow = CommandSolver(command=program(tmp_path, "import time; time.sleep(60)").command, seconds=0.5)
    done = work(queue, slow, "ada", 1)
    assert [(one.did, one.note) for one in done] == [(Did.RELEASED, "it ran out of time")]


def test_a_solver_that_fails_gives_its_item_back(queue: FixQueue, engine: Engine) -> None:
    def broken(*_: object) -> Proposal:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work(queue, broken, "ada", 1)
    with engine.connect() as db:
        assert {one.state for one in fixes.items(db)} == {ItemState.QUEUED}


def test_a_program_there_is_not_is_refused() -> None:
    with pytest.raises(BadInput):
        CommandSolver.of("no-such-program --x", 1.0)
