"""`neuronqa triage`: root causes."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from neuronqa.cli.options import AsJson, Db
from neuronqa.cli.output import out, print_json

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    help="Root causes and what each blocks.",
)


@app.callback()
def triage() -> None:
    """Keep `list` a subcommand while it is the only one."""


@app.command("list", help="List the root causes of a sweep, those first whose fix alone would turn most entries.")
def list_causes(
    name: Annotated[
        str | None, typer.Argument(metavar="[SWEEP]", help="A sweep's name (default: the newest).", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many.")] = 40,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    from neuronqa.db import queries
    from neuronqa.db.engine import open_engine
    from neuronqa.report.build import causes
    from neuronqa.report.value import cause_json
    from neuronqa.sweep.standings import standings

    with open_engine(db).connect() as connection:
        row = queries.sweep(connection, name)
        found = causes(connection, row, standings(connection, row))
    if as_json:
        body = [cause_json(cluster) for cluster in found[:limit]]
        print_json({"schema_version": 1, "sweep": row.name, "causes": body, "count": len(found)})
        return
    table = Table(title=f"{len(found)} root causes in sweep {row.name} (catalog source: {row.catalog.source.value})")
    table.add_column("key", style="dim", no_wrap=True)
    table.add_column("rung")
    table.add_column("outcome", overflow="fold")
    table.add_column("at fault")
    for column in ("workloads", "entries blocked", "by it alone"):
        table.add_column(column, justify="right")
    for cluster in found[:limit]:
        cause = cluster.cause
        cells = (cause.key, cause.rung.value, escape(str(cause.outcome)), cause.at_fault.value)
        table.add_row(*cells, f"{len(cluster.workloads):,}", f"{cluster.entries:,}", f"{cluster.sole_entries:,}")
    out.print(table)
