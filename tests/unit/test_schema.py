"""The migrations are the schema; the tables in code only describe it."""

from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from neuronqa.db.engine import open_engine
from neuronqa.db.tables import escape, metadata, unescape


def test_the_migrations_and_the_tables_in_code_describe_the_same_schema(tmp_path: Path) -> None:
    engine = open_engine(str(tmp_path / "a.db"), create=True)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_every_string_survives_the_escape() -> None:
    for text in ("", "plain", "\\", "\\\\0000", "a\0b", "\ud800", "é\\u1234\0\udfff", "\\00"):
        stored = escape(text)
        assert "\0" not in stored
        stored.encode("utf-8")
        assert unescape(stored) == text
