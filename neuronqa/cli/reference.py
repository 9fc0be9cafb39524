"""`neuronqa reference`: what another device makes of workloads, to be compared with."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from neuronqa import catalog as catalogs
from neuronqa.cli.options import AsJson
from neuronqa.cli.output import err, out, print_json
from neuronqa.device.prepare import prepare
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Mode, Variant
from neuronqa.errors import ExitCode, UsageError
from neuronqa.report.selection import results_in
from neuronqa.sweep import certification, recording
from neuronqa.sweep.census import statuses_of
from neuronqa.worker import bundle as bundles

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    help="Record what a trusted device makes of workloads: `sweep --reference` compares with it.",
)
SCHEMA = 1


@app.callback()
def reference() -> None:
    """A group even while it has one command."""


@app.command(help="Run workloads on a trusted device, and keep the results as a reference bundle.")
def record(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The bundle; it is added to.")],
    device: Annotated[str, typer.Option(help="The trusted device: cuda, cpu, or another accelerator.")] = "cuda",
    profile: Annotated[str, typer.Option(metavar="NAME|FILE", help="What a simulated device can do.")] = "",
    catalog: Annotated[str, typer.Option(metavar="NAME|DIR", help="Where the workloads come from.")] = "top-100k",
    workloads: Annotated[int, typer.Option(min=1, help="Workloads, as different as possible.")] = 40,
    variant: Annotated[
        list[str] | None,
        typer.Option(metavar="VARIANT", help="Default: eager/fp32/train and eager/bf16/train.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    variants = [_variant(text) for text in variant or ("eager/fp32/train", "eager/bf16/train")]
    prepared = prepare(BuildOrder(device=device, profile=profile))
    bundle = bundles.create(output, device, prepared.vector.versions)
    chosen = certification.choose(catalogs.open(catalog, statuses=statuses_of, results=results_in(None)), workloads)
    said: Counter[str] = Counter()
    for number, (_, _, outcome) in enumerate(recording.record(chosen, variants, prepared.order, bundle), start=1):
        said[outcome] += 1
        err.print(f"{number}/{len(chosen) * len(variants)}", end="\r")
    kept = sum(count for outcome, count in said.items() if ":" in outcome)
    if as_json:
        facts = {
            "bundle": str(output),
            "device": device,
            "workloads": len(chosen),
            "kept": kept,
            "outcomes": dict(said),
        }
        print_json({"schema_version": SCHEMA, **facts})
    else:
        out.print(f"{kept} results of {escape(device)} kept in {escape(str(output))}")
        for outcome, count in said.most_common():
            out.print(f"{count:6} {escape(outcome)}")
    raise typer.Exit(int(ExitCode.DONE if kept else ExitCode.CANNOT_TELL))


def _variant(text: str) -> Variant:
    try:
        parsed = Variant.parse(text)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if parsed.mode is not Mode.EAGER:
        raise UsageError(f"{text}: a bundle holds eager runs", hint="compiled runs are compared with the same")
    return parsed
