"""News of a sweep that runs, as server-sent events: fragments of HTML that the page swaps in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool

from neuronqa.dashboard.render import Renderer
from neuronqa.db import queries
from neuronqa.db.browse import sweeps
from neuronqa.db.browse.sweeps import Progress

PACE_S: Final = 2.0
LONGEST_S: Final = 3600.0
"""After this the browser connects anew: no stream outlives a page that was forgotten."""


async def events(engine: Engine, renderer: Renderer, name: str, pace: float = PACE_S) -> AsyncIterator[str]:
    """`progress` whenever something changed, `done` once nothing more is to come; then the stream ends."""
    before = None
    for _ in range(int(LONGEST_S / pace)):
        now = await run_in_threadpool(_look, engine, name)
        if now != before:
            yield event("progress", renderer.html("_progress.html", {"progress": now}))
            before = now
        if not now.awaited:
            yield event("done", now.state)
            return
        await asyncio.sleep(pace)


def event(name: str, data: str) -> str:
    """One event: every line of its data is marked, so that nothing in it can be taken for an event."""
    lines = "".join(f"data: {line}\n" for line in data.splitlines() or [""])
    return f"event: {name}\n{lines}\n"


def _look(engine: Engine, name: str) -> Progress:
    with engine.connect() as db:
        return sweeps.progress(db, queries.sweep(db, name))
