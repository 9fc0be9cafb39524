"""A comparison for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from neuronqa.domain.change import Change
from neuronqa.report.compare import Comparison
from neuronqa.report.performance import Performance
from neuronqa.report.plain import visible

SHOWN = 20
TOLD = (Change.REGRESSED, Change.SHIFTED, Change.MASKED, Change.FIXED, Change.NOT_RUN, Change.GONE)


def render(found: Comparison, limit: int = SHOWN) -> RenderableType:
    """Counts that add up, then the lines of every change that asks for a look."""
    head = Text(f"{found.a.name} -> {found.b.name}", style="bold")
    counts = Table(box=None, pad_edge=False)
    counts.add_column("change")
    counts.add_column("entries", justify="right")
    for change in Change:
        counts.add_row(change.value, f"{found.counts[change]:,}")
    sums = Text(f"registered {found.a.registered:,} and {found.b.registered:,}; both sums hold", style="dim")
    tables = [Padding(_lines(found, change, limit), (1, 0, 0, 0)) for change in TOLD if found.counts[change]]
    costs = [Padding(_costs(found.performance, limit), (1, 0, 0, 0))] if found.performance else []
    return Group(head, counts, sums, *tables, *costs)


def _costs(found: Performance, limit: int) -> Table | Text:
    """What became dearer, which fails nothing."""
    typical = "too few to compare times of steps" if found.machine is None else f"typical step x {found.machine:.2f}"
    title = f"performance, gates nothing: {len(found.dearer):,} dearer in {found.compared:,} cases of both; {typical}"
    if not found.dearer:
        return Text(title, style="dim")
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in ("family", "variant", "figure"):
        table.add_column(column, overflow="fold")
    for column in ("before", "after"):
        table.add_column(column, justify="right")
    for one in found.dearer[:limit]:
        before, after = (f"{value:.3g}" for value in (one.before, one.after))
        table.add_row(escape(visible(one.family)), one.variant, one.figure.value, before, after)
    return table


def _lines(found: Comparison, change: Change, limit: int) -> Table:
    lines = sorted(
        found.of(change), key=lambda line: -max(side.downloads for side in (line.before, line.after) if side)
    )
    more = f" (first {limit:,} of {len(lines):,})" if len(lines) > limit else ""
    table = Table(title=change.value + more, title_justify="left", box=None, pad_edge=False)
    for column in ("entry", "before", "after", "run again"):
        table.add_column(column, overflow="fold")
    for line in lines[:limit]:
        before, after = (_side(side.rung, side.outcome) if side else "-" for side in (line.before, line.after))
        note = line.confirmed + (" waived" if line.waived else "")
        table.add_row(escape(visible(line.name)), before, after, escape(note))
    return table


def _side(rung: str, outcome: str) -> str:
    return escape(visible(f"{rung} {outcome}".strip())) or "green"
