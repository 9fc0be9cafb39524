"""`neuronqa repro`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from neuronqa.cli.options import AsJson, Db
from neuronqa.cli.output import out, print_json
from neuronqa.errors import ExitCode

if TYPE_CHECKING:
    from neuronqa.domain.repro import Repro

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command(
    help="Write a folder with a small script that shows one failure without NeuronQA: the one operator to blame with "
    "its arguments, or the shrunken model. Exits 1 if the failure does not show."
)
def repro(
    what: Annotated[str, typer.Argument(metavar="CASE|CLUSTER", help="A case's hash, a cluster's id or a cause key.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="A new or empty folder. [default: repro-CASE]"),
    ] = None,
    run: Annotated[bool, typer.Option("--run", help="Then run it once more, in fresh processes, and compare.")] = False,
    sweep: Annotated[str | None, typer.Option(metavar="SWEEP", help="A sweep's name. [default: the newest]")] = None,
    budget: Annotated[float, typer.Option(min=1, help="Seconds to look for a smaller script.")] = 120.0,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    from neuronqa.db import queries
    from neuronqa.db.engine import open_engine
    from neuronqa.triage import repro as making

    with open_engine(db).connect() as connection:
        row = queries.sweep(connection, sweep)
        folder = output or Path(f"repro-{making.find(connection, row, what).case[:12]}")
        made = making.make(connection, row, what, folder, budget)
        again = making.rerun(folder, row) if run else None
    holds = made.same if again is None else again.same
    if as_json:
        print_json({**made.to_json(), "folder": str(folder), "again": again.to_json() if again else None})
    else:
        _show(made, folder)
        if again is not None:
            said = "the same cause again" if again.same else "not the same cause"
            out.print(escape(f"run once more: {said} ({', '.join(again.seen) or 'nothing failed'})"))
    raise typer.Exit(int(ExitCode.DONE if holds else ExitCode.GATE_MISSED))


def _show(made: Repro, folder: Path) -> None:
    out.print(escape(f"{folder}/repro.py  {made.grain.value}, {made.lines} lines"))
    out.print(escape(f"expected  {made.outcome}  {made.key}"))
    out.print(escape(f"seen      {', '.join(made.seen) or 'nothing failed'}"))
    if not made.same_build:
        out.print("the device's build is not the sweep's: what is seen is what this build does")
    verdict = "it shows the same cause" if made.same else "it does NOT show the cause: see the case's evidence instead"
    out.print(verdict)
