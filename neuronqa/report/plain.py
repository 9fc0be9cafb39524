"""Hostile strings made inert, for each place they may be shown. Configs, tracebacks and ids all come from strangers."""

from __future__ import annotations

import re
from typing import Any, Final

_MARKS: Final = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$@&:])")
_ENTITIES: Final = {"<": "&lt;", ">": "&gt;", "@": "&#64;", "#": "&#35;"}
_XML: Final = re.compile(
    "[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u007f-\u0084\u0086-\u009f\ufdd0-\ufdef]"
)
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
REPLACED: Final = "\ufffd"


def visible(text: str) -> str:
    """Without what moves a cursor, colours, hides, or turns the reading order; what was there is marked."""
    return "".join(ch if ch.isprintable() else " " if ch in "\t\r\n" else REPLACED for ch in text)


def markdown(text: str) -> str:
    """Text inside Markdown, also in a table's cell: every mark that could mean something is escaped, no line breaks.

    `@` and `#` are broken as well, so that nobody is notified and no issue is linked by a model's name.
    """
    shown = " ".join(visible(text).split())
    return _MARKS.sub(lambda mark: _ENTITIES.get(mark[0], f"\\{mark[0]}"), shown)


def xml(text: str) -> str:
    """Text that XML 1.0 may hold: what it may not is marked. Escaping is the writer's."""
    return _XML.sub(REPLACED, text)


def cell(value: Any) -> Any:
    """A value for a spreadsheet: a text that would be taken for a formula is quoted.

    (owasp.org, CSV Injection)
    """
    if isinstance(value, str):
        shown = visible(value)
        return f"'{shown}" if is_formula(value) else shown
    return value


def is_formula(text: str) -> bool:
    """Would a spreadsheet compute this?"""
    return text.startswith(_FORMULA) or visible(text).lstrip().startswith(_FORMULA)


def command(text: str) -> str:
    """The message of a GitHub workflow command: one line, so that no other command begins in it.

    (docs.github.com, workflow commands)
    """
    return visible(text).replace("%", "%25")


def command_property(text: str) -> str:
    """A property of such a command, which a colon would end and a comma divide."""
    return command(text).replace(":", "%3A").replace(",", "%2C")
