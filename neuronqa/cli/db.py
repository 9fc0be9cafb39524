"""`neuronqa db`: look after the database."""

from __future__ import annotations

import typer

from neuronqa.cli.options import Db
from neuronqa.cli.output import out

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    help="Look after the database.",
)


@app.callback()
def db() -> None:
    """Keep `upgrade` a subcommand while it is the only one."""


@app.command(help="Bring the database to the schema of this version.")
def upgrade(db: Db = None) -> None:
    from neuronqa.db.engine import check_file, database_url, driver_lock, head_revision, open_engine, shown

    url = database_url(db)
    check_file(url, create=True)
    with driver_lock(url):
        open_engine(db, create=True).dispose()
    out.print(f"{shown(url)} is at schema {head_revision()}")
