"""`neuronqa report`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from neuronqa.cli.options import Db
from neuronqa.cli.output import out, print_json

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


class Format(StrEnum):
    """How a report is written."""

    TEXT = "text"
    JSON = "json"


@app.command(help="Print the report of a sweep (the newest if none is named).")
def report(
    name: Annotated[str | None, typer.Argument(metavar="[SWEEP]", help="A sweep's name.", show_default=False)] = None,
    format_: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.TEXT,
    db: Db = None,
) -> None:
    from neuronqa.db.engine import open_engine
    from neuronqa.report.build import build
    from neuronqa.report.text import print_report
    from neuronqa.report.value import to_json

    with open_engine(db).connect() as connection:
        value = build(connection, name)
    match format_:
        case Format.TEXT:
            print_report(value, out)
        case Format.JSON:
            print_json(to_json(value))
