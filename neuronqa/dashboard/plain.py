"""Strings from configs, tracebacks and agents, made inert for wherever they are shown."""

from __future__ import annotations

import unicodedata
from typing import Any, Final

from markupsafe import Markup

from neuronqa.report.plain import is_formula

SHOWN: Final = 20_000
"""Characters of one value on a page."""
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_KEPT: Final = frozenset("\n\t")


def visible(text: str) -> str:
    """`text` with everything that could hide or reorder it written out, and cut where it is very long.

    Control characters (of terminals too), directional overrides, zero-width characters and lone surrogates become
    `\\u202e` and the like.
    """
    cut = text[:SHOWN]
    if not cut.isascii() or not cut.isprintable():
        cut = "".join(_written(ch) for ch in cut)
    return cut if len(text) <= SHOWN else f"{cut} … ({len(text):,} characters in all)"


def _written(ch: str) -> str:
    if ch in _KEPT or unicodedata.category(ch) not in _HIDDEN:
        return ch
    point = ord(ch)
    return f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def finalize(value: Any) -> Any:
    """What Jinja does to every value before it escapes it. Markup comes from our own templates alone."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def cell(value: Any) -> Any:
    """A value for a spreadsheet: no text is a formula. (owasp.org/www-community/attacks/CSV_Injection)"""
    if not isinstance(value, str):
        return value
    text = visible(value)
    return f"'{text}" if is_formula(value) else text
