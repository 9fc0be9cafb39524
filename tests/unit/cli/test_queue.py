"""`neuronqa queue` from a person's and an agent's side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from neuronqa.cli import mcp, queue
from neuronqa.db.engine import open_engine
from neuronqa.errors import BadInput
from tests.queued import OPERATORS, OVERLAY, plan, queue_over, swept


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    engine = open_engine(str(tmp_path / "q.db"), create=True)
    swept(engine, plan(engine), "20261201-000000-0000", OPERATORS)
    queue_over(engine, tmp_path / "home", monkeypatch).fill(None, "sweep")
    engine.dispose()
    monkeypatch.setenv("NEURONQA_DB", str(tmp_path / "q.db"))
    monkeypatch.setenv("NEURONQA_QUEUE", str(tmp_path / "home"))
    return tmp_path


def run(*words: str, app: Any = queue.app, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == code, (words, done.output, done.exception)
    return done.stdout


def said(*words: str, code: int = 0) -> Any:
    return json.loads(run(*words, "--json", code=code))


def test_an_item_goes_from_hand_to_hand(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = said("list")
    assert listed["states"] == {"queued": 2}
    assert [one["refusal"] for one in said("list", "--refused")["clusters"]].count("live-item") == 2
    claimed = said("claim", "--as", "ada")
    monkeypatch.setenv("NEURONQA_LEASE", claimed["lease"])
    item = claimed["item"]["id"]
    run("heartbeat")
    assert said("bundle")["operator"] in OPERATORS
    run("bundle", "-o", str(home / "out"))
    assert {path.name for path in (home / "out").iterdir()} >= {"bundle.md", "repro.py", "about.json"}
    (home / "fix.py").write_text(OVERLAY.format(operator=claimed["item"]["operator"]))
    assert said("submit", str(home / "fix.py"))["item"] == item
    assert said("verdict", str(item), code=5)["verdict"] is None
    assert "submitted" in run("show", str(item))
    assert "submitted" in run("list", "--state", "submitted")
    assert "# Fix queue" in run("summary")
    run("cancel", str(item), "--why", "enough")
    assert said("show", str(item))["state"] == "cancelled"
    assert said("list", "--after", str(item), "--state", "cancelled")["items"] == []


def test_a_build_is_handed_in_by_its_path_and_what_is_neither_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURONQA_LEASE", said("claim")["lease"])
    refused = CliRunner().invoke(queue.app, ["submit", str(home)])
    assert isinstance(refused.exception, BadInput)
    wheel = home / "device.whl"
    wheel.write_bytes(b"PK")
    assert said("submit", str(wheel))["submission"] == 1


def test_nothing_free_is_said_by_the_exit_code(home: Path) -> None:
    del home
    for _ in range(2):
        said("claim")
    run("claim", code=1)


def test_tokens_are_shown_once_and_kept_as_hashes(home: Path) -> None:
    token = run("token", "create", "ada", "--scope", "reviewer", app=mcp.app).strip()
    kept = (home / "home" / "tokens.json").read_text()
    assert token not in kept
    assert (home / "home" / "tokens.json").stat().st_mode & 0o077 == 0
    assert "ada  reviewer" in run("token", "list", app=mcp.app)
    run("token", "revoke", "ada", app=mcp.app)
    assert run("token", "list", app=mcp.app) == ""
