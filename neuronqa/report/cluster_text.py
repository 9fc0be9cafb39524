"""A cluster for a terminal."""

from __future__ import annotations

import time

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from neuronqa.report.cluster import ClusterPage
from neuronqa.report.plain import visible

SHOWN = 10


def render(page: ClusterPage) -> RenderableType:
    """What it is, why these failures are one, what it holds, and what became of it."""
    one = page.cluster
    head = Text.assemble((f"Cluster {one.id}  ", "bold"), (str(one.outcome), "bold"), f"  {one.state.value}")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    grid.add_row("on", _safe(one.lane))
    grid.add_row("stops at", f"{one.rung.value}; at fault: {one.at_fault.value}")
    grid.add_row("assigned to", _safe(one.assignee) or "-")
    if one.merged_into:
        grid.add_row("merged into", str(one.merged_into))
    for waiver in page.waivers:
        until = time.strftime("%Y-%m-%d", time.localtime(waiver.expires))
        state = "taken back" if waiver.revoked else f"until {until}"
        grid.add_row("waiver", _safe(f"{waiver.owner}, {state}: {waiver.reason} (still counted as failing)"))
    return Group(head, grid, Padding(_keys(page), (1, 0)), _cases(page), Padding(_journal(page), (1, 0)))


def _keys(page: ClusterPage) -> Table:
    table = Table(title="What makes it one cause", title_justify="left", box=None, pad_edge=False)
    for column in ("key", "part", "value", "counts", "why"):
        table.add_column(column, overflow="fold")
    for row in page.keys:
        only = f" (only {row.part} {row.value})" if row.part else ""
        for n, part in enumerate(row.parts):
            key = _safe(row.key + only) if n == 0 else ""
            counts = "yes" if part["counts"] else "no"
            table.add_row(key, part["name"], _safe(part["value"]), counts, _safe(part["hint"]))
    return table


def _cases(page: ClusterPage) -> Table:
    title = f"Cases in sweep {page.sweep}, worst first"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in ("case", "family", "variant", "in words"):
        table.add_column(column, overflow="fold")
    for case in page.cases[:SHOWN]:
        words = (" (symptom) " if case.symptom else "") + case.words[:200]
        table.add_row(case.case[:12], _safe(case.family), str(case.variant), _safe(words))
    return table


def _journal(page: ClusterPage) -> Table:
    table = Table(title="Journal", title_justify="left", box=None, pad_edge=False)
    for column in ("when", "who", "what", "state", "why"):
        table.add_column(column, overflow="fold")
    for event in page.journal:
        at = time.strftime("%Y-%m-%d %H:%M", time.localtime(event.at))
        who, why = _safe(event.actor), _safe(event.reason)
        table.add_row(at, who, event.action.value, event.after.value, why)
    return table


def _safe(text: str) -> str:
    """No markup, and nothing that moves a cursor, changes a colour or turns the reading order."""
    return escape(visible(text))
