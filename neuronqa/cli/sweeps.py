"""`neuronqa sweeps`: list and show."""

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
    help="List sweeps, or show one.",
)


@app.command("list", help="List the newest sweeps of a database.")
def list_sweeps(db: Db = None, as_json: AsJson = False) -> None:
    from neuronqa.db import queries
    from neuronqa.db.engine import open_engine

    with open_engine(db).connect() as connection:
        rows = queries.sweeps(connection)
    if as_json:
        print_json({"schema_version": 1, "sweeps": [dict(row._mapping) for row in rows]})
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("sweep", "catalog", "policy", "device", "state"):
        table.add_column(column, no_wrap=column == "sweep")
    for column in ("seconds", "attempts"):
        table.add_column(column, justify="right")
    for row in rows:
        what = f"{row.catalog} ({row.source})", row.policy_name, f"{row.device} {row.profile}", row.state
        table.add_row(row.name, *(escape(cell) for cell in what), f"{row.wall_s:,.0f}", f"{row.attempts:,}")
    out.print(table)


@app.command("show", help="Show what a sweep was asked to do and how far it got.")
def show_sweep(
    name: Annotated[
        str | None, typer.Argument(metavar="[SWEEP]", help="A sweep's name (default: the newest).", show_default=False)
    ] = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    from neuronqa.db import planning, queries
    from neuronqa.db.engine import open_engine

    with open_engine(db).connect() as connection:
        row = queries.sweep(connection, name)
        work = queries.work(connection, row.id)
        left = planning.left(connection, row.id)
    facts = {
        "sweep": row.name,
        "state": row.state,
        "catalog": row.catalog.name,
        "source": row.catalog.source.value,
        "registered": row.catalog.registered,
        "policy": row.policy_name,
        "device": row.device,
        "profile": row.profile,
        "build": row.build_hash,
        "options": dict(row.options),
        "attempts": work.attempts,
        "attempts_by_kind": dict(work.by_kind),
        "workloads": work.workloads,
        "cases": work.cases,
        "cases_left": left.cases,
        "wall_s": row.wall_s,
        "busy_s": work.cpu_s,
    }
    if as_json:
        print_json({"schema_version": 1, **facts})
        return
    grid = Table.grid(padding=(0, 2))
    for key, value in facts.items():
        grid.add_row(key.replace("_", " "), escape(str(value)))
    out.print(grid)
