"""Options that several verbs share, worded once, and who asks."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated

import typer

Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="URL",
        help="Database: a SQLite file or postgresql://... (default: $NEURONQA_DB, else ./neuronqa.db).",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout instead of text.")]
Home = Annotated[
    Path | None,
    typer.Option(
        "--home",
        metavar="FOLDER",
        help="The queue's own folder (default: $NEURONQA_QUEUE, else ./neuronqa-queue).",
        show_default=False,
    ),
]


def caller() -> str:
    """Who a journal names where nobody else was named."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "somebody"
