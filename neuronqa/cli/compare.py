"""`neuronqa compare`."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer

from neuronqa.cli.options import AsJson, Db
from neuronqa.cli.output import out, print_json
from neuronqa.domain.change import Change
from neuronqa.errors import ExitCode

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


class Failing(StrEnum):
    """Changes a comparison may be failed on."""

    REGRESSED = Change.REGRESSED
    SHIFTED = Change.SHIFTED
    MASKED = Change.MASKED
    NOT_RUN = Change.NOT_RUN


@app.command(help="Compare two sweeps, or exported Parquet files, entry by entry.")
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="A sweep's name, or FILE.parquet: before.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The same: after.")],
    fail_on: Annotated[
        list[Failing] | None,
        typer.Option("--fail-on", help="Exit 1 if there is any that is not waived.", show_default=False),
    ] = None,
    confirm: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=20,
            show_default="3 for two sweeps whose builds are here",
            help="Run every regressed case alone, so often on both builds; 0 for not at all.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Lines a change.")] = 20,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    from neuronqa.db.engine import open_engine
    from neuronqa.report import compare as comparing
    from neuronqa.report import export
    from neuronqa.report.compare_text import render

    with open_engine(db).connect() as connection:
        found = comparing.compare(export.side(connection, a), export.side(connection, b))
        found = replace(found, performance=export.performance(connection, a, b))
        if confirm != 0 and found.counts[Change.REGRESSED]:
            from neuronqa.report import confirm as confirming

            if confirm is not None or confirming.possible(found):
                found = confirming.confirm(connection, found, confirm or confirming.TIMES)
    if as_json:
        print_json(found.to_json())
    else:
        out.print(render(found, limit))
    bad = [line for asked in fail_on or () for line in found.of(Change(asked)) if not line.waived]
    raise typer.Exit(int(ExitCode.GATE_MISSED if bad else ExitCode.DONE))
