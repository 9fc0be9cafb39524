"""The text of a config.json becomes a dict of plain values, or a reason why it cannot.

The text is hostile: it may be no JSON, be nested without end, hold huge numbers or be a web page. Nothing here raises
anything but :class:`Malformed`.
"""

from __future__ import annotations

import json
from typing import Any, Final

from neuronqa.domain.identity import NON_FINITE

SIZE_LIMIT: Final = 16 * 1024 * 1024
"""Characters. The largest honest configs carry image vocabularies of a few megabytes."""
DEPTH_LIMIT: Final = 64
"""Nested containers. Composite configs need about eight."""
DIGITS_LIMIT: Final = 40
"""Digits of an integer literal; Python itself refuses some thousands, at quadratic cost below that."""

_NON_FINITE: Final = {"Infinity": float("inf"), "-Infinity": float("-inf"), "NaN": float("nan")}
_BOM: Final = "\ufeff"


class Malformed(Exception):
    """The text is not a JSON object that can be read; `str()` says why."""


def decode(text: str) -> dict[str, Any]:
    """Read one JSON object as transformers would: bare `NaN` and `Infinity` and its own float objects are accepted.

    Of repeated keys the last wins, as in `json.load`. Raises Malformed.
    """
    text = text.removeprefix(_BOM)
    if len(text) > SIZE_LIMIT:
        raise Malformed(f"longer than {SIZE_LIMIT} characters")
    if not text.strip():
        raise Malformed("empty")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise Malformed("not UTF-8")
    _refuse_deep(text)
    try:
        value = json.loads(text, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise Malformed(_not_json(text, error)) from error
    except (RecursionError, MemoryError) as error:
        raise Malformed("nested too deeply") from error
    if not isinstance(value, dict):
        raise Malformed(f"a JSON {_json_name(value)}, not an object")
    plain = _floats(value)
    assert isinstance(plain, dict)
    return plain


def _refuse_deep(text: str) -> None:
    """Brackets inside strings count too: only texts with very many of them reach the exact count."""
    if text.count("[") + text.count("{") <= DEPTH_LIMIT:
        return
    depth = 0
    inside = escaped = False
    for character in text:
        if inside:
            inside = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            inside = True
        elif character in "[{":
            depth += 1
            if depth > DEPTH_LIMIT:
                raise Malformed(f"nested deeper than {DEPTH_LIMIT} levels")
        elif character in "]}":
            depth -= 1


def _integer(literal: str) -> int:
    if len(literal) > DIGITS_LIMIT:
        raise Malformed(f"an integer of {len(literal)} digits")
    return int(literal)


def _not_json(text: str, error: json.JSONDecodeError) -> str:
    start = text.lstrip()[:200].lower()
    if start.startswith("version https://git-lfs"):
        return "a Git LFS pointer, not the file itself"
    if start.startswith(("<!doctype", "<html", "<?xml")):
        return "a web page, not JSON"
    if "\ufffd" in text:
        return "not UTF-8"
    return f"not JSON: {error.msg} at line {error.lineno} column {error.colno}"


def _json_name(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "number"


def _floats(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {NON_FINITE}:
            return _float_of(value[NON_FINITE])
        return {key: _floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_floats(item) for item in value]
    return value


def _float_of(word: Any) -> float:
    if isinstance(word, str) and word in _NON_FINITE:
        return _NON_FINITE[word]
    raise Malformed(f"{NON_FINITE} must be one of {sorted(_NON_FINITE)}, not {str(word)[:40]!r}")
