"""The SQL views of `db/views`, for dashboards and people who ask the database themselves; our own code reads none.

They are dropped before the schema changes and made anew after it, so that a view always fits the tables.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, text

from neuronqa.bundled import folder

NAMES: Final = (
    "v_rung",
    "v_sweep",
    "v_ladder",
    "v_cause",
    "v_journal",
    "v_architecture",
    "v_failure",
    "v_operator",
    "v_control",
    "v_cost",
)
"""In an order in which each needs only those before it."""


def drop(db: Connection) -> None:
    for name in reversed(NAMES):
        db.execute(text(f"DROP VIEW IF EXISTS {name}"))


def create(db: Connection) -> None:
    for name in NAMES:
        body = (folder("db") / "views" / f"{name}.sql").read_text(encoding="ascii")
        db.execute(text(f"CREATE VIEW {name} AS\n{body}"))
