"""What every table is made of: one metadata, naming, and text that any database takes."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import BigInteger, Integer, MetaData, Text, TypeDecorator
from sqlalchemy.engine import Dialect

NAMING: Final = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}

metadata = MetaData(naming_convention=NAMING)

Id = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows by itself only for a column that is exactly INTEGER."""


class SafeText(TypeDecorator[str]):
    """Any Python string, in any database: NUL and lone surrogates, which PostgreSQL refuses, are written as escapes."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else escape(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else unescape(str(value))


def escape(text: str) -> str:
    """Reversibly replace what a database refuses: backslash, NUL and surrogates become backslash escapes."""
    if text.isascii() and "\\" not in text and "\0" not in text:
        return text
    return "".join(_escaped(ch) for ch in text)


def unescape(text: str) -> str:
    """Undo :func:`escape`."""
    if "\\" not in text:
        return text
    parts = text.split("\\")
    return parts[0] + "".join(chr(int(part[:4], 16)) + part[4:] for part in parts[1:])


def _escaped(ch: str) -> str:
    return f"\\{ord(ch):04x}" if ch in "\\\0" or "\ud800" <= ch <= "\udfff" else ch
