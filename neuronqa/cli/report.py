"""`neuronqa report`."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from neuronqa.cli.options import Db
from neuronqa.cli.output import err, out, print_json
from neuronqa.errors import EnvironmentFault, UsageError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from neuronqa.report.value import Report
    from neuronqa.report.verdict import Verdict

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


class Format(StrEnum):
    """How a report is written."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"
    JUNIT = "junit"
    PARQUET = "parquet"
    """One row an entry, to be compared with later."""
    GITHUB = "github"
    """Annotations on stdout, Markdown in the step's summary."""
    SCHEMA = "schema"
    """The JSON Schema of `json`."""


Gate = Annotated[
    str | None,
    typer.Option("--gate", metavar="EXPR", help="Exit 0, 1 or 5 by e.g. 'green>=80%,runs>=95%'.", show_default=False),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        "--baseline", metavar="SWEEP|FILE", help="Exit 1 if entries regressed against this.", show_default=False
    ),
]


@app.command(help="Print the report of a sweep (the newest if none is named), or write it to a file.")
def report(
    name: Annotated[str | None, typer.Argument(metavar="[SWEEP]", help="A sweep's name.", show_default=False)] = None,
    format_: Annotated[Format, typer.Option("--format", help="How to write it.")] = Format.TEXT,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="PATH", help="Where to (default: stdout).", show_default=False),
    ] = None,
    gate: Gate = None,
    baseline: Baseline = None,
    db: Db = None,
) -> None:
    if format_ is Format.SCHEMA:
        from neuronqa.report.schema import SCHEMA

        print_json(SCHEMA)
        return
    from neuronqa.db.engine import open_engine
    from neuronqa.report.build import build
    from neuronqa.report.decide import decide

    if format_ is Format.PARQUET and output is None:
        raise UsageError("Parquet is no text", hint="say where to: -o entries.parquet")
    with open_engine(db).connect() as connection:
        value = build(connection, name)
        verdict = decide(connection, value, gate, baseline) if gate or baseline else None
        _write(connection, value, verdict, format_, output)
    if verdict is not None:
        if format_ is not Format.TEXT:
            err.print(f"{verdict.answer.value}: {'; '.join(verdict.reasons)}", markup=False)
        raise typer.Exit(int(verdict.answer.exit_code))


def _write(
    connection: Connection, value: Report, verdict: Verdict | None, format_: Format, output: Path | None
) -> None:
    from neuronqa.report import github, html, junit, markdown, text
    from neuronqa.report.value import to_json

    match format_:
        case Format.TEXT if output is None:
            text.print_report(value, out, verdict)
        case Format.TEXT:
            _put(text.plain(value, verdict), output)
        case Format.JSON if output is None:
            print_json(to_json(value, verdict))
        case Format.JSON:
            import json

            _put(json.dumps(to_json(value, verdict), indent=2, ensure_ascii=True, allow_nan=False) + "\n", output)
        case Format.MARKDOWN:
            _put(markdown.render(value, verdict), output)
        case Format.HTML:
            _put(html.render(value, verdict), output)
        case Format.JUNIT:
            _put(junit.render(value, verdict), output)
        case Format.PARQUET:
            from neuronqa.report import export

            assert output is not None, "was refused"
            err.print(f"{export.write(connection, value.sweep, output):,} entries", markup=False)
        case Format.GITHUB:
            summary = output or (Path(at) if (at := os.environ.get("GITHUB_STEP_SUMMARY")) else None)
            if summary is not None:
                _put(markdown.render(value, verdict), summary, append=True)
            _put(github.commands(value, verdict), None)
        case Format.SCHEMA:
            raise AssertionError("was printed")


def _put(body: str, output: Path | None, *, append: bool = False) -> None:
    data = body.encode("utf-8", "replace")
    if output is None:
        import sys

        sys.stdout.buffer.write(data)
        sys.stdout.flush()
        return
    try:
        with output.open("ab" if append else "wb") as file:
            file.write(data)
    except OSError as error:
        raise EnvironmentFault("the report cannot be written", where=str(output), hint=str(error)) from error
