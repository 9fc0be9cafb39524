"""`neuronqa profile`: what a case would look like on the hardware, as a trace for Perfetto."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.markup import escape

from neuronqa.cli.options import AsJson, Db
from neuronqa.cli.output import out, print_json
from neuronqa.errors import BadInput, UsageError

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)

SCHEMA: Final = 1
SIMULATED: Final = "neuron"
DEFAULT_PROFILE: Final = "trn2-sdk2.33"


@app.command(help="Run one step of a case on the simulated device, and write its modelled timeline as a trace.")
def profile(
    case: Annotated[str, typer.Argument(metavar="CASE", help="A case of a sweep: its hash, or how it begins.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The trace, in Chrome's format.")],
    variant: Annotated[
        str | None,
        typer.Option(metavar="VARIANT", help="Run it otherwise: compile/bf16/train.", show_default=False),
    ] = None,
    profile: Annotated[str, typer.Option(metavar="NAME|FILE", help="The hardware.")] = DEFAULT_PROFILE,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    from neuronqa.db import queries
    from neuronqa.db.engine import open_engine
    from neuronqa.device.prepare import prepare
    from neuronqa.domain.build import BuildOrder
    from neuronqa.domain.case import Variant
    from neuronqa.worker.tracing import trace_of

    with open_engine(db).connect() as connection:
        found = queries.case(connection, case)
    if found.device != SIMULATED:
        raise BadInput(f"the case is one of the device {found.device!r}", hint="only the simulated device is modelled")
    try:
        chosen = Variant.parse(variant) if variant else found.variant
    except ValueError as error:
        raise UsageError(str(error)) from error
    prepared = prepare(BuildOrder(device=SIMULATED, profile=profile))
    traced = trace_of(found.workload, chosen, prepared.order)
    traced["otherData"] |= {"case": found.hash, "family": found.workload.spec.family}
    _write(output, traced)
    about = {"schema_version": SCHEMA, "trace": str(output), **traced["otherData"]}
    print_json(about) if as_json else _show(about)


def _write(path: Path, traced: dict[str, Any]) -> None:
    try:
        path.write_text(json.dumps(traced), encoding="utf-8")
    except OSError as error:
        raise BadInput(f"the trace cannot be written: {error.strerror}", where=str(path)) from error


def _show(about: dict[str, Any]) -> None:
    told = about["modelled"]
    busy = ", ".join(f"{lane} {share:.0%}" for lane, share in told["busy"].items())
    out.print(escape(f"{about['family']} {about['variant']} on {about['profile']}: {about['trace']}"))
    out.print(escape(f"modelled, not measured: {told['seconds'] * 1e3:.3f} ms, MFU {told['mfu']:.1%}; busy: {busy}"))
    out.print(f"memory peak {told['memory_peak'] / 2**20:.1f} MiB, as the device counted it")
    if about["fell_back"]:
        out.print(escape(f"on the CPU: {', '.join(about['fell_back'])}"))
    if "failure" in about:
        out.print(escape(f"ended early: {about['failure']['error']}: {about['failure']['message'][:200]}"))
