"""A check of one model for a terminal: rung by rung, then the first blocker, then what to do."""

from __future__ import annotations

import io
from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from neuronqa.checkup.value import Blocker, Checkup, next_step
from neuronqa.domain.ladder import RungState
from neuronqa.domain.outcome import Standing

OTHERS_SHOWN = 8
TRACEBACK_LINES = 40
_SAYS = {Standing.PASS: ("holds", "green"), Standing.FAIL: ("no", "red"), Standing.NOT_RUN: ("not run", "dim")}


def as_text(checkup: Checkup) -> str:
    """The same without colours, for logs and assertion messages."""
    console = Console(file=io.StringIO(), width=120, highlight=False)
    console.print(render(checkup))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def render(checkup: Checkup) -> RenderableType:
    """Everything, top to bottom in the order a person needs it."""
    if checkup.lost:
        return Group(_title(checkup), Text(f"Nothing was judged: {checkup.lost}", style="red"), _next(checkup))
    if checkup.unfit:
        return Group(*_unfit(checkup), _next(checkup))
    return Group(
        _title(checkup),
        Padding(_ladder(checkup), (1, 0)),
        *_blockers(checkup),
        *_taxes(checkup),
        *_fit(checkup),
        _next(checkup),
    )


def one_line(checkup: Checkup) -> str:
    """What is wrong, where, in one line; for a green one, that it is."""
    first = checkup.first
    if first is None:
        return f"{checkup.name}: {'nothing was judged: ' + checkup.lost if checkup.lost else 'green'}"
    at = f" at {first.place}" if first.place else ""
    return " ".join(f"{checkup.name}: {first.outcome}{at}: {first.words}".split())


def _title(checkup: Checkup) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    grid.add_row("model", Text(f"{checkup.name}, {checkup.parameters:,} parameters", style="bold"))
    size = f"a shrunken twin ({checkup.shrunk})" if checkup.shrunk else "as it is"
    weights = "as its factory makes them" if checkup.own else "random weights"
    grid.add_row("checked", Text(f"{size}, {weights}"))
    profile = f", profile {checkup.profile}" if checkup.profile else ""
    grid.add_row("device", Text(f"{checkup.device}{profile}"))
    grid.add_row("policy", Text(f"{checkup.policy}, {checkup.seconds:.1f} s"))
    if checkup.not_guarded and checkup.device != "neuron":
        grid.add_row("unguarded", Text(f"no fault can be planted here for: {', '.join(checkup.not_guarded)}"))
    return grid


def _ladder(checkup: Checkup) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for state in checkup.rungs:
        word, style = _SAYS[state.standing]
        table.add_row(f"  {state.rung.value}", Text(word, style=style), Text(_why(checkup, state), overflow="fold"))
    return table


def _why(checkup: Checkup, state: RungState) -> str:
    failed = [one for one in checkup.blockers if one.rung is state.rung]
    if failed:
        variants = ", ".join(dict.fromkeys(str(one.variant) for one in failed))
        return f"{failed[0].outcome}  ({variants})"
    return str(state.outcome) if state.outcome else ""


def _blockers(checkup: Checkup) -> Iterator[RenderableType]:
    first = checkup.first
    if first is None:
        return
    yield Text.assemble(("first blocker  ", "bold"), (str(first.outcome), "red"), f"  in {first.variant}")
    yield Text(f"  {first.words}")
    yield from _place(first)
    if first.traceback and first.place is None:
        yield Padding(Text(_tail(first.traceback), style="dim"), (0, 0, 0, 2))
    seen = {(first.outcome, first.place)}
    others = []
    for one in checkup.blockers[1:]:
        if (one.outcome, one.place) not in seen:
            seen.add((one.outcome, one.place))
            others.append(one)
    if others:
        yield Text("others", style="bold")
    for one in others[:OTHERS_SHOWN]:
        yield Text(f"  {one.outcome}  in {one.variant}" + (f"  at {one.place}" if one.place else ""))
    if len(others) > OTHERS_SHOWN:
        yield Text(f"  and {len(others) - OTHERS_SHOWN} more (--json)")


def _place(one: Blocker) -> Iterator[RenderableType]:
    if one.place is None:
        return
    when = f", in {one.place.progress}" if one.place.progress not in ("", one.place.function) else ""
    yield Text(f"  at {one.place}{when}")
    if one.place.code:
        yield Text(f"      {one.place.code}", style="bold")


def _unfit(checkup: Checkup) -> Iterator[RenderableType]:
    """One clear line, and the person's own traceback."""
    yield Text(one_line(checkup), style="red")
    first = checkup.first
    if first is not None and first.traceback:
        yield Text(_tail(first.traceback))


def _tail(traceback: str) -> str:
    lines = traceback.splitlines()
    return "\n".join(lines if len(lines) <= TRACEBACK_LINES else ["...", *lines[-TRACEBACK_LINES:]])


def _taxes(checkup: Checkup) -> Iterator[RenderableType]:
    for tax in (one for one in checkup.taxes if one.graphs):
        yield Text.assemble(
            ("compile tax  ", "bold"),
            f"{tax.variant}: {tax.graphs} graphs traced, {tax.cache_misses} compiled, {tax.cache_hits} found compiled, "
            f"{tax.recompiled} recompilations; first step {tax.first_step_s:.2f} s, then {tax.steady_step_s:.3f} s",
        )


def _fit(checkup: Checkup) -> Iterator[RenderableType]:
    if checkup.fit:
        said = f"{checkup.fit['kind']} (modelled): {checkup.fit['words']}"
        yield Text.assemble(("full size  ", "bold"), f"{checkup.fit['parameters']:,} parameters, {said}")


def _next(checkup: Checkup) -> RenderableType:
    return Text.assemble(("next  ", "bold"), next_step(checkup))
