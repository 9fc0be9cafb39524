"""Options that several verbs share, worded once."""

from __future__ import annotations

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
