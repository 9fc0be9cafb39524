"""`neuronqa controls`: are the checks able to fail, and is that shown?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.markup import escape
from rich.table import Table

from neuronqa import catalog as catalogs
from neuronqa.cli.options import AsJson
from neuronqa.cli.output import err, out, print_json
from neuronqa.device.prepare import prepare
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Variant
from neuronqa.domain.policy import Thresholds
from neuronqa.errors import ExitCode, UsageError
from neuronqa.report.selection import results_in
from neuronqa.sweep import certification
from neuronqa.sweep.census import statuses_of
from neuronqa.sweep.request import default_workers
from neuronqa.sweep.trials import TrialLog

TOGETHER: Final = 12
"""Plants between two writes of the results."""

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command(help="Plant faults and good twins into many workloads, and say which check noticed what.")
def controls(
    catalog: Annotated[str, typer.Option(metavar="NAME|DIR", help="Where the workloads come from.")] = "top-100k",
    workloads: Annotated[int, typer.Option(min=1, help="Workloads, as different as possible.")] = 40,
    variant: Annotated[
        list[str] | None,
        typer.Option(metavar="VARIANT", help="Default: eager/fp32/train and compile/fp32/train.", show_default=False),
    ] = None,
    kind: Annotated[list[str] | None, typer.Option(help="Only these kinds.", show_default=False)] = None,
    device: Annotated[str, typer.Option(help="Device: neuron, cpu, or another accelerator.")] = "neuron",
    profile: Annotated[str, typer.Option(metavar="NAME|FILE", help="What the simulated device can do.")] = "ideal",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes (default: one a core).")] = None,
    results: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write every trial to FILE; what it holds is not made again."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    log = TrialLog(results)
    variants = [_variant(text) for text in variant or ("eager/fp32/train", "compile/fp32/train")]
    prepared = prepare(BuildOrder(device=device, profile=profile))
    whole = catalogs.open(catalog, statuses=statuses_of, results=results_in(None))
    chosen = certification.choose(whole, workloads)
    given = certification.assignments(chosen, variants, device, frozenset(kind or ()))
    if not given:
        raise UsageError("nothing can be planted", hint=f"kinds and variants must be such that {device} takes them")
    total = sum(len(one.plants) for one in given)
    parts = log.remaining(certification.divided(given, TOGETHER))
    for part, trials in certification.carry_out(parts, prepared.order, Thresholds(), workers or default_workers()):
        log.append(part, trials)
        err.print(f"{len(log)}/{total}", end="\r")
    found = {**certification.summary(log, device), "device": device, "profile": profile}
    found["catalog"] = {"name": whole.info.name, "source": whole.info.source.value}
    print_json(found) if as_json else _show(found)
    missed = found["effective"] - found["detected"] or found["false_alarms"]
    raise typer.Exit(int(ExitCode.GATE_MISSED if missed else ExitCode.DONE))


def _variant(text: str) -> Variant:
    try:
        return Variant.parse(text)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _show(found: dict[str, Any]) -> None:
    catalog = found["catalog"]
    out.print(f"workloads of {escape(catalog['name'])}, source: {catalog['source']}")
    out.print(
        f"{found['faults']} kinds of fault in {found['workloads']} workloads on {escape(found['device'])}: "
        f"{found['planted']} planted, {found['effective']} effective, {found['detected']} noticed; "
        f"first deviation right {found['first_deviation_right']} of {found['first_deviation_asked']}; "
        f"{found['false_alarms']} false alarms on {found['good_twins']} good twins"
    )
    table = Table("kind", "check", "planted", "effective", "noticed", "by", box=None)
    for kind, row in found["by_kind"].items():
        by = ", ".join(f"{check} {count}" for check, count in row["noticed_by"].items())
        counts = (str(row[name]) for name in ("planted", "effective", "noticed"))
        table.add_row(escape(kind), row["check"] or "good twin", *counts, by)
    out.print(table)
    for title, rows in (("missed", found["missed"]), ("false alarm", found["alarms"])):
        for row in rows:
            out.print(f"{title}: {escape(row['kind'])} in {escape(row['family'])} ({row['variant']})")
    out.print(
        f"fit to be controls in a sweep: {', '.join(found['pool']) or 'none (20 certain trials of a kind needed)'}"
    )
    out.print(f"guarded by nothing planted here: {', '.join(found['unguarded'])}")
