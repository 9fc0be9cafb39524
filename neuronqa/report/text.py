"""The report for a terminal: rich renderables that read the Report and nothing else."""

from __future__ import annotations

import io
import shlex
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from neuronqa.domain.catalog import Source
from neuronqa.domain.ladder import Evidence, Gate
from neuronqa.domain.outcome import AtFault
from neuronqa.report.plain import visible
from neuronqa.report.value import VERDICTS_ARE_FOR, Report

if TYPE_CHECKING:
    from neuronqa.report.verdict import Verdict

STATES_SHOWN = 12


def print_report(report: Report, console: Console, verdict: Verdict | None = None) -> None:
    """Print the whole report."""
    console.print(render(report, verdict))


def plain(report: Report, verdict: Verdict | None = None) -> str:
    """The same without colours, for a file."""
    console = Console(file=io.StringIO(), width=120, no_color=True, highlight=False)
    with console.capture() as captured:
        console.print(render(report, verdict))
    return captured.get()


def render(report: Report, verdict: Verdict | None = None) -> RenderableType:
    """The report, top to bottom in the order a person needs it."""
    return Group(
        _title(report),
        *_verdict(verdict),
        _trust(report),
        Padding(_ladder(report), (1, 0)),
        _headline(report),
        *_beside(report),
        Padding(_states(report), (1, 0)),
        _flattering(report),
        Padding(_causes(report), (1, 0)),
        *_waivers(report),
        _next_commands(report),
    )


def percent(rate: float | None) -> str:
    """Two decimals below 10 %, one above; never rounded up to 100 %."""
    if rate is None:
        return "withheld"
    value = rate * 100
    if value < 100.0 and f"{value:.1f}" == "100.0":
        return "99.9 %"
    return f"{value:.2f} %" if 0 < value < 10 else f"{value:.1f} %"


def span(gate: Gate) -> str:
    """`[low, high]`, or the word for a rate that no control vouches for."""
    if gate.low is None or gate.high is None:
        return "withheld"
    return f"[{percent(gate.low)}, {percent(gate.high)}]"


def _verdict(verdict: Verdict | None) -> Iterator[RenderableType]:
    if verdict is None:
        return
    colours = {"ship": "green", "do not ship": "red", "cannot tell": "yellow"}
    yield Text(verdict.answer.value, style=f"bold {colours[verdict.answer.value]}")
    yield from (Text(f"  {visible(reason)}") for reason in verdict.reasons)
    for run in verdict.runs:
        yield Text(f"  to decide: {run.command}  ({visible(run.why)})", style="dim")


def _title(report: Report) -> RenderableType:
    state = "" if report.state == "done" else f" ({report.state})"
    return Text(f"Sweep {report.sweep}{state}", style="bold")


def _trust(report: Report) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    catalog = report.catalog
    source = (
        "synthetic: generated here, not the Hub's list" if catalog.source is Source.SYNTHETIC else catalog.source.value
    )
    grid.add_row("catalog", escape(f"{catalog.name}  (source: {source}; sha256 {catalog.sha256[:12]})"))
    grid.add_row("verdicts", f"are for {VERDICTS_ARE_FOR}")
    grid.add_row("registered", f"{catalog.registered:,} entries")
    counts = report.evidence
    grid.add_row(
        "entries",
        f"{counts.get(Evidence.EXECUTED, 0):,} by their own workload's run, "
        f"{counts.get(Evidence.INHERITED, 0):,} inherited, {counts.get(Evidence.NONE, 0):,} not run",
    )
    work = report.workloads
    grid.add_row(
        "workloads",
        f"{work.complete:,} complete of {work.executed:,} executed of {work.planned:,} planned; "
        f"{report.attempts:,} attempts, {report.busy_s:,.0f} CPU s in {report.wall_s:,.0f} s on {report.cores} cores",
    )
    grid.add_row("device", escape(f"{report.device}, profile {report.profile}, build {report.build[:12]}"))
    narrowed = "  (narrowed: the headline is partial)" if report.partial else ""
    grid.add_row("policy", escape(f"{report.policy.name} ({report.policy.sha256[:12]}){narrowed}"))
    controls = report.controls
    style = "red" if controls.missed else "" if controls.unjudged else "green"
    grid.add_row("controls", Text(str(controls), style=style))
    grid.add_row(
        "audit",
        f"{report.audit_drawn} inherited workloads executed after all, {report.audit_disagreed} disagreed "
        f"(at most {percent(report.audit_bound)} of inherited verdicts wrong, 95 %)",
    )
    if report.reused or report.redone:
        said = f"{report.reused:,} cases taken over from earlier sweeps; {report.redone:,} executed anyway, "
        style = "red" if report.redone_disagreed else ""
        grid.add_row("reuse", Text(f"{said}{report.redone_disagreed:,} disagreed", style=style))
    return grid


def _ladder(report: Report) -> RenderableType:
    table = Table(title="Ladder (cumulative, over everything registered)", title_justify="left", title_style="bold")
    table.add_column("rung")
    for name in ("passed", "failed", "not run"):
        table.add_column(name, justify="right")
    table.add_column("[low, high] of entries", justify="right")
    table.add_column("of downloads", justify="right")
    for gate, weighted in zip(report.gates, report.download_gates, strict=True):
        table.add_row(
            gate.rung.value, f"{gate.passed:,}", f"{gate.failed:,}", f"{gate.not_run:,}", span(gate), span(weighted)
        )
    return table


def _headline(report: Report) -> RenderableType:
    lines = [Text.assemble(("green  ", "bold"), (span(report.honest), "bold"), " of everything registered")]
    device = report.at_fault.get(AtFault.DEVICE, 0)
    lines.append(
        Text(f"       {percent(device / max(1, report.catalog.registered))} failed because of the device alone")
    )
    lines += [Text(f"withheld from {rung.value} up: {why}", style="red") for rung, why in report.withheld.items()]
    return Group(*lines)


def _beside(report: Report) -> Iterator[RenderableType]:
    if not report.beside:
        return
    table = Table(title="Beside what was published", title_justify="left", title_style="bold")
    table.add_column("figure", overflow="fold")
    for name in ("published", "here", "error"):
        table.add_column(name, justify="right")
    table.add_column("source", overflow="fold")
    for one in report.beside:
        error = "-" if one.error is None else f"{one.error * 100:+.1f} %"
        here = f"{one.here:,.10g} {one.unit}" if not one.modelled else f"{one.here:,.1f} {one.unit} (modelled)"
        table.add_row(escape(one.what), f"{one.published:,.10g} {one.unit}", here, error, escape(one.source))
    yield Padding(table, (1, 0, 0, 0))


def _states(report: Report) -> RenderableType:
    table = Table(title="Entries by state (one each)", title_justify="left", title_style="bold", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    ordered = sorted(report.states.items(), key=lambda item: (item[0] != "green", -item[1]))
    for label, n in ordered[:STATES_SHOWN]:
        table.add_row(escape(label), f"{n:,}")
    rest = ordered[STATES_SHOWN:]
    if rest:
        table.add_row(f"{len(rest)} more states", f"{sum(n for _, n in rest):,}")
    return table


def _flattering(report: Report) -> RenderableType:
    lines = [Text("Rates others would print from the same rows", style="bold")]
    for rate in report.flattering:
        shown = "-" if rate.rate is None else percent(rate.rate)
        lines.append(Text.assemble(f"  {rate.name:<16} {shown:>8}  ", (f"leaves out {rate.leaves_out}", "dim")))
    return Group(*lines)


def _causes(report: Report) -> RenderableType:
    if not report.causes:
        return Text("No root causes: nothing failed that was run.")
    title = f"Fix next (top {len(report.causes)} of {report.cause_count} root causes)"
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("key", style="dim", no_wrap=True)
    table.add_column("outcome", overflow="fold")
    table.add_column("at fault")
    table.add_column("entries blocked", justify="right")
    table.add_column("by it alone", justify="right")
    table.add_column("unlocked so far", justify="right")
    for one in report.causes:
        table.add_row(
            one.cluster.key,
            escape(str(one.cluster.outcome)),
            one.cluster.at_fault.value,
            f"{one.entries:,}",
            f"{one.sole_entries:,}",
            f"{one.unlocked_entries:,}",
        )
    return table


def _waivers(report: Report) -> Iterator[RenderableType]:
    if not report.waivers:
        return
    yield Text("Waived, and still counted as failing", style="bold")
    for one in report.waivers:
        until = time.strftime("%Y-%m-%d", time.gmtime(one.expires))
        text = f"  {one.outcome}: {one.entries:,} entries; {one.owner}, until {until}: {one.reason}"
        yield Text(visible(text))


def _next_commands(report: Report) -> RenderableType:
    """Each of them works as it is printed. A database with a password is named by the environment instead."""
    secret = "***" in report.database
    option = "" if secret else f" --db {shlex.quote(report.database)}"
    lines = [
        Text.assemble(("database  ", "dim"), report.database),
        Text("next" + (" (with NEURONQA_DB set to the database's URL)" if secret else ""), style="bold"),
        Text(f"  neuronqa report {report.sweep}{option}"),
        Text(f"  neuronqa triage list{option}"),
        Text(f"  neuronqa dashboard{option}"),
        Text(f"  neuronqa sweep --resume {report.sweep}{option}"),
    ]
    for line in lines:
        line.no_wrap, line.overflow = True, "ignore"
    return Group(*lines)
