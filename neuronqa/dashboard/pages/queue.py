"""The fix queue: its items, who works on them, and what was said of what they handed in."""

from __future__ import annotations

import time
from typing import Any, Final

from neuronqa.dashboard.pages import columns
from neuronqa.dashboard.view import Column, Form, Scope, View, listed, to
from neuronqa.db import fixes as kept
from neuronqa.db.browse import fixes
from neuronqa.domain.fix import ItemState
from neuronqa.fixqueue.page import item_page

STRIP_S: Final = 7 * 86_400.0
ITEMS: Final = (
    Column(name="id", title="item", form=Form.COUNT, href=to("/queue", "id")),
    Column(name="title", title="cause", form=Form.MONO, href=to("/queue", "id")),
    Column(name="state", title="state"),
    Column(name="held_by", title="held by"),
    Column(name="cluster_id", title="cluster", form=Form.COUNT, href=to("/clusters", "cluster_id")),
    columns.ENTRIES,
    Column(name="submissions", title="handed in", form=Form.COUNT),
    Column(name="rejections", title="rejected", form=Form.COUNT),
    Column(name="made", title="offered", form=Form.TIME),
)


def page(scope: Scope) -> View:
    """Every item, below a strip of the states and of the agents of the last week."""
    table = scope.table(fixes.listing(), ITEMS, "Root causes offered to agents")
    states = {state.value: n for state, n in kept.by_state(scope.db).items() if n}
    agents = [dict(row._mapping) for row in kept.agents(scope.db, time.time() - STRIP_S)]
    strip: dict[str, Any] = {"states": states, "agents": agents}
    return View(template="queue.html", title="Fix queue", data={**listed(table), **strip}, table=table, show=strip)


def detail(scope: Scope, item: int) -> View:
    """One item. These pages are for operators: they show what a verdict keeps from agents."""
    found = item_page(scope.db, item, operator=True)
    waits = found["state"] == ItemState.NEEDS_HUMAN.value
    return View(template="item.html", title=f"Item {item}", data=found, show={"item": found, "waits": waits})
