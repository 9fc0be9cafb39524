"""`neuronqa db`: look after the database."""

from __future__ import annotations

from typing import Annotated

import typer

from neuronqa.cli.options import AsJson, Db
from neuronqa.cli.output import out, print_json
from neuronqa.errors import InvariantBroken

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    help="Look after the database.",
)


@app.command(help="Bring the database to the schema of this version.")
def upgrade(db: Db = None) -> None:
    from neuronqa.db.engine import check_file, database_url, driver_lock, head_revision, open_engine, shown

    url = database_url(db)
    check_file(url, create=True)
    with driver_lock(url):
        open_engine(db, create=True).dispose()
    out.print(f"{shown(url)} is at schema {head_revision()}")


@app.command(help="Prove that the rows add up: every entry in one state, nothing twice, nothing that hangs in the air.")
def check(db: Db = None, as_json: AsJson = False) -> None:
    from neuronqa.db.engine import open_engine
    from neuronqa.db.invariants import check as invariants

    with open_engine(db, read_only=True).connect() as connection:
        found = list(invariants(connection))
    broken = [one for one in found if one.times]
    if as_json:
        told = [{"what": one.what, "times": one.times} for one in broken]
        print_json({"schema_version": 1, "asked": len(found), "broken": told})
    elif not broken:
        out.print(f"{len(found)} invariants hold")
    if broken:
        worst = broken[0]
        raise InvariantBroken(
            f"{len(broken)} of {len(found)} invariants are broken, the first {worst.times:,} times: {worst.what}",
            hint="do not trust its reports; restore a copy, or sweep into a new database",
        )


@app.command(help="Forget all but the newest sweeps: their results go, their names stay.")
def prune(
    keep: Annotated[int, typer.Option(min=1, metavar="N", help="How many sweeps to keep.")],
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    from neuronqa.db.engine import check_file, database_url, driver_lock, open_engine
    from neuronqa.db.prune import prune as forget

    url = database_url(db)
    check_file(url, create=False)
    with driver_lock(url):
        gone = forget(open_engine(db), keep)
    if as_json:
        print_json({"schema_version": 1, "sweeps": gone.sweeps, "attempts": gone.attempts, "blobs": gone.blobs})
    else:
        out.print(f"{gone.sweeps:,} sweeps forgotten: {gone.attempts:,} attempts, {gone.blobs:,} pieces of evidence")
