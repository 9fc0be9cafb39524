"""`neuronqa triage`: root causes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from neuronqa.cli.options import AsJson, Db
from neuronqa.cli.output import out, print_json

if TYPE_CHECKING:
    from neuronqa.db.clusters import ClusterCount

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    help="Root causes and what each blocks.",
)

Sweep = Annotated[
    str | None, typer.Argument(metavar="[SWEEP]", help="A sweep's name (default: the newest).", show_default=False)
]


@app.callback()
def triage() -> None:
    """Keep `list` a subcommand while it is the only one."""


@app.command("list", help="List the root causes of a sweep in the order of fixes that unlocks most entries.")
def list_causes(
    name: Sweep = None,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many.")] = 40,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    from neuronqa.db import clusters, queries
    from neuronqa.db.engine import open_engine
    from neuronqa.report.value import cause_json
    from neuronqa.triage.analysis import preview

    with open_engine(db).connect() as connection:
        row = queries.sweep(connection, name)
        kept = clusters.triaged(connection, row.id)
        found = clusters.counts(connection, row.id) if kept else preview(connection, row)
    if as_json:
        body = [cause_json(one) for one in found[:limit]]
        extra = {"grade": kept.grade, "unlock": kept.unlock} if kept else {}
        print_json({"schema_version": 1, "sweep": row.name, "causes": body, "count": len(found), **extra})
        return
    out.print(f"{len(found)} root causes in sweep {row.name} (catalog source: {row.catalog.source.value})")
    out.print(_table(found[:limit]))
    if len(found) > limit:
        out.print(f"{len(found) - limit:,} more: --limit {len(found)}")


def _table(found: Sequence[ClusterCount]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("id", justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("outcome", overflow="fold", ratio=1)
    table.add_column("at fault", no_wrap=True)
    for column in ("entries", "alone", "so far"):
        table.add_column(column, justify="right", no_wrap=True)
    for one in found:
        id_ = str(one.cluster.id) if one.cluster.id > 0 else "-"
        outcome = escape(str(one.cluster.outcome))
        numbers = (f"{n:,}" for n in (one.entries, one.sole_entries, one.unlocked_entries))
        table.add_row(id_, one.state.value, outcome, one.cluster.at_fault.value, *numbers)
    return table
