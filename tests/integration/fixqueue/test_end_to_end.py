"""Sweep, queue, agent, verification, landing, and the sweep that confirms: nothing in it stands in for anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from neuronqa.fixqueue import solver
from tests.integration.fixqueue.test_mcp import alone, call

ROOT = Path(__file__).parents[3]
CATALOG = Path(__file__).parent / "lacking"
FIXED = {"aten::minimum", "aten::fmax"}


def neuronqa(home: Path, *arguments: str) -> Any:
    """What a command says in JSON."""
    place = {"NEURONQA_DB": str(home / "q.db"), "NEURONQA_QUEUE": str(home / "queue"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", "from neuronqa.cli.main import run; run()", *arguments, "--json"],
        env={**os.environ, **place, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (arguments, done.stdout[-1000:], done.stderr[-3000:])
    texts = done.stdout.strip().replace("\n}\n{", "\n}\0{").split("\0")
    values = [json.loads(text) for text in texts if text]
    return values[0] if len(values) == 1 else values


def sweep(home: Path, *more: str) -> Any:
    return neuronqa(home, "sweep", "--catalog", str(CATALOG), "--policy", "quick", *more)


def green(report: Any) -> int:
    return int(report["gates"]["trains"]["passed"])


async def tried_over_mcp(home: Path, item: int, overlays: list[str]) -> tuple[Any, list[Any], Any]:
    """What its reproduction shows, what trying overlays says, and the item afterwards."""
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-c", "from neuronqa.cli.main import run; run()", "mcp", "--home", str(home / "queue")],
        env={**os.environ, "NEURONQA_DB": str(home / "q.db"), "PYTHONPATH": str(ROOT)},
    )
    async with Client(parameters) as client:
        lease = (await call(client, "claim", item=item))["lease"]
        shown = json.loads((await call(client, "run_repro", lease=lease))["text"])
        tried = [json.loads((await call(client, "try", lease=lease, content=one))["text"]) for one in overlays]
        await call(client, "release", lease=lease)
        return shown, tried, await call(client, "get", item=item)


@pytest.mark.full
def test_what_agents_fix_turns_as_many_models_green_as_was_predicted(tmp_path: Path) -> None:
    before = sweep(tmp_path)
    filled = neuronqa(tmp_path, "queue", "fill")
    offered = {item["operator"]: item["id"] for item in neuronqa(tmp_path, "queue", "list")["items"]}
    assert len(filled["items"]) == len(offered)
    assert offered.keys() >= FIXED
    assert all(one["refusal"] or one["cluster"] for one in filled["clusters"])

    right = solver.overlay("aten::minimum", solver.DEFINITIONS["aten::minimum"])
    wrong = right.replace("return ", "return 2 * ")
    shown, (good, bad), item = alone(tried_over_mcp(tmp_path, offered["aten::minimum"], [right, wrong]))
    assert shown["same"]
    assert good["fine"]
    assert all(case["fixed"] for case in good["cases"])
    assert (bad["fine"], bad["reason"]) == (False, "values")
    assert (item["state"], item["rejections"], item["submissions"]) == ("queued", 0, [])

    worked = {one["item"]: one for one in neuronqa(tmp_path, "queue", "agent")["items"]}
    submitted = {operator for operator, item in offered.items() if worked[item]["did"] == "submitted"}
    assert submitted == FIXED
    assert {one["did"] for one in worked.values()} == {"submitted", "abstained"}

    verdicts = neuronqa(tmp_path, "queue", "verify")
    assert [one["verdict"]["conclusion"] for one in verdicts] == ["accepted", "accepted"], verdicts
    landed = neuronqa(tmp_path, "queue", "land")
    assert set(landed["items"]) == {offered[one] for one in FIXED}
    predicted = neuronqa(tmp_path, "queue", "predict")

    after = sweep(tmp_path, *(word for path in landed["overlays"] for word in ("--overlay", path)))
    assert predicted["low"] <= green(after) - green(before) <= predicted["high"]
    assert predicted["low"] == 3
    settled = {one["item"]: one["state"] for one in neuronqa(tmp_path, "queue", "settle")["items"]}
    assert settled == dict.fromkeys(landed["items"], "confirmed")
