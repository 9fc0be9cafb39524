"""What became of the queue in a day, as Markdown."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, Final

from sqlalchemy import Connection

from neuronqa.db import fixes
from neuronqa.domain.fix import ItemState
from neuronqa.fixqueue.bundle import plain

DAY_S: Final = 86_400.0
_LISTED: Final = (ItemState.ACCEPTED, ItemState.LANDED, ItemState.CONFIRMED, ItemState.REVERTED, ItemState.NEEDS_HUMAN)
_MOST: Final = 40


def summary(db: Connection, now: float, hours: float = 24.0) -> str:
    """The last hours: what moved, who worked, what was said, and what waits for a person."""
    since = now - hours * 3600.0
    counted = fixes.by_state(db)
    events = fixes.events(db, since)
    stamp = time.strftime("%Y-%m-%d %H:%M", time.gmtime(now))
    lines = [f"# Fix queue, {stamp} UTC", "", f"The last {hours:g} hours.", ""]
    lines += ["| state | items |", "|---|---:|"]
    lines += [f"| {state.value} | {n:,} |" for state, n in counted.items() if n]
    lines += ["", f"{len(events):,} changes; {_entries(db, events):,} entries behind what was confirmed.", ""]
    for state in _LISTED:
        lines += _section(db, state, [event for event in events if event.after == state.value])
    lines += _said(events) + _agents(db, since)
    return "\n".join(lines).rstrip() + "\n"


def _section(db: Connection, state: ItemState, events: list[Any]) -> list[str]:
    if not events:
        return []
    lines = [f"## {state.value.capitalize()}", ""]
    for event in events[-_MOST:]:
        item = fixes.item(db, event.item_id)
        lines.append(f"- {item.id}: `{plain(item.title, 120)}`, {item.entries:,} entries: {_cell(event.why)}")
    return [*lines, ""]


def _said(events: list[Any]) -> list[str]:
    """How often each verdict was given, most often first."""
    counted = Counter(event.why for event in events if event.why.startswith(("rejected", "inconclusive")))
    if not counted:
        return []
    lines = ["## Not accepted", "", "| verdict | times |", "|---|---:|"]
    return [*lines, *(f"| {_cell(why)} | {n} |" for why, n in counted.most_common(_MOST)), ""]


def _agents(db: Connection, since: float) -> list[str]:
    found = fixes.agents(db, since)
    if not found:
        return []
    lines = ["## Agents", "", "| agent | leases | handed in | holds |", "|---|---:|---:|---:|"]
    return [*lines, *(f"| {_cell(row.agent)} | {row.leases} | {row.submitted} | {row.held} |" for row in found), ""]


def _entries(db: Connection, events: list[Any]) -> int:
    confirmed = {event.item_id for event in events if event.after == ItemState.CONFIRMED.value}
    return sum(fixes.item(db, item_id).entries for item_id in confirmed)


def _cell(said: str) -> str:
    return plain(said, 200).replace("|", "\\|").replace("<", "&lt;")
