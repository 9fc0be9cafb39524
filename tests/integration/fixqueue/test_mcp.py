"""The official MCP client drives the queue over stdio and over HTTP."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest
import uvicorn
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from neuronqa.db.engine import open_engine
from neuronqa.fixqueue import mcp_server
from neuronqa.fixqueue.bundle import tokens
from neuronqa.fixqueue.reason import Reason
from neuronqa.fixqueue.service import FixQueue
from neuronqa.fixqueue.tokens import Scope, Tokens
from neuronqa.fixqueue.verdict import Conclusion, Stage, Verdict
from neuronqa.fixqueue.verifier import verify_next
from tests.queued import OPERATORS, OVERLAY, plan, queue_over, swept

Result = TypeVar("Result")

NAME = "20261201-000000-0000"


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FixQueue:
    engine = open_engine(str(tmp_path / "q.db"), create=True)
    swept(engine, plan(engine), NAME, OPERATORS)
    made = queue_over(engine, tmp_path / "home", monkeypatch)
    made.fill(None, "sweep")
    return FixQueue(engine=engine, home=made.home)


@contextmanager
def over_http(queue: FixQueue) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        site = mcp_server.networked(queue, "unused", "127.0.0.1", port)
        server = uvicorn.Server(uvicorn.Config(site, log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.should_exit = True
            thread.join(10)


def with_token(url: str, token: str) -> Client:
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"})
    return Client(streamable_http_client(url, http_client=http))


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    text = result.content[0].text  # type: ignore[union-attr]
    assert tokens(text) < 2000, tool
    return json.loads(text) if not result.is_error else text


async def drive(client: Client, queue: FixQueue) -> dict[str, Any]:
    """list -> claim -> bundle -> submit -> verdict, as any client would."""
    async with client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"list", "get", "claim", "heartbeat", "bundle", "run_repro", "submit", "verdict"} <= names
        listed = await call(client, "list")
        assert len(listed["rows"]) == 2
        claimed = await call(client, "claim", item=listed["rows"][0]["id"])
        lease, item = claimed["lease"], claimed["item"]
        await call(client, "heartbeat", lease=lease)
        text, cursor = "", ""
        while cursor or not text:
            piece = await call(client, "bundle", lease=lease, cursor=cursor)
            text, cursor = text + piece["text"], piece["next"]
        assert item["operator"] in text
        assert tokens(text) < 6000
        sent = await call(client, "submit", lease=lease, content=OVERLAY.format(operator=item["operator"]))
        assert "over" in await call(client, "submit", lease=lease, content="again")
        waiting = await call(client, "verdict", item=sent["item"])
        assert (waiting["state"], waiting["verdict"]) == ("submitted", None)

        def verify(*_: object) -> Verdict:
            return Verdict(conclusion=Conclusion.REJECTED, stage=Stage.SIBLINGS, reason=Reason.VALUES, note="case 7")

        await asyncio.to_thread(verify_next, queue, "verifier", verify)
        for tool in ("report", "cluster", "op", "model"):
            assert await call(client, tool)
        assert await call(client, "search", words="operator")
        found = await call(client, "verdict", item=sent["item"])
        assert "case 7" not in json.dumps(found)
        said: dict[str, Any] = found["verdict"]
        return said


def alone(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run it in a thread of its own: a browser's loop may still run in this one."""
    with ThreadPoolExecutor() as apart:
        return apart.submit(asyncio.run, coroutine).result()


def test_a_client_works_an_item_off_over_http(queue: FixQueue) -> None:
    token = Tokens(folder=queue.home).create("ada", Scope.AGENT)
    with over_http(queue) as url:
        said = alone(drive(with_token(url, token), queue))
    assert (said["stage"], said["reason"]) == ("S4 siblings", "values")


def test_a_client_works_an_item_off_over_stdio(queue: FixQueue, tmp_path: Path) -> None:
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-c", "from neuronqa.cli.main import run; run()", "mcp", "--home", str(queue.home)],
        env={"NEURONQA_DB": str(tmp_path / "q.db"), "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    said = alone(drive(Client(parameters), queue))
    assert said["reason"] == "values"


def test_tokens_have_scopes_and_strangers_none(queue: FixQueue) -> None:
    kept = Tokens(folder=queue.home)
    agent, reviewer = kept.create("ada", Scope.AGENT), kept.create("eve", Scope.REVIEWER)

    async def tried(url: str) -> None:
        async with with_token(url, agent) as client:
            assert "scope agent" in await call(client, "cancel", item=1, why="mine")
            assert "scope agent" in await call(client, "decide", item=1, accept=True, why="mine")
            lease = (await call(client, "claim"))["lease"]
        async with with_token(url, reviewer) as client:
            assert "scope reviewer" in await call(client, "claim")
            assert "scope reviewer" in await call(client, "abstain", lease=lease, why="not mine")
        kept.revoke("ada")
        async with httpx2.AsyncClient() as http:
            for header in ({}, {"Authorization": f"Bearer {agent}"}, {"Authorization": "Bearer x"}):
                answer = await http.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=header)
                assert answer.status_code == 401
            evil = {"Authorization": f"Bearer {reviewer}", "Host": "evil.example"}
            answer = await http.post(url, json={}, headers=evil)
            assert answer.status_code == 421

    with over_http(queue) as url:
        alone(tried(url))


def test_a_caller_is_held_to_a_rate(queue: FixQueue) -> None:
    async def asked() -> list[Any]:
        async with Client(mcp_server.local(queue, "unused", "ada")) as client:
            return [await call(client, "verdict", item=1) for _ in range(mcp_server.A_MINUTE + 1)]

    answers = alone(asked())
    assert isinstance(answers[0], dict)
    assert "in a minute" in answers[-1]
