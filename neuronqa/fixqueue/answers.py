"""Answers that are short whatever is asked: cut to a number of tokens, with a cursor for the rest."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from neuronqa.domain.identity import strict
from neuronqa.errors import BadInput
from neuronqa.fixqueue.bundle import tokens

LIMIT: Final = 1900
"""Tokens of one answer; what a client adds to it stays below 2,000."""
ROWS: Final = (20, 10, 5, 2, 1)
CUT: Final = 400
"""Characters of a text in an answer."""


def answer(value: Mapping[str, Any]) -> str:
    """A value as JSON, its texts cut. Lists that make it too long lose their ends, and it says so."""
    shown = _cut(strict(dict(value)), CUT)
    most = 30
    while tokens(text := json.dumps(shown, ensure_ascii=True)) > LIMIT and most:
        most //= 2
        shown = {**_shortened(shown, most), "truncated": True}
    return text if tokens(text) <= LIMIT else json.dumps({"truncated": True, "error": "too long to be shown"})


def rows(read: Callable[[int], tuple[list[Any], str]], **more: Any) -> str:
    """As many rows as fit; `read` takes a limit and returns rows and the cursor behind them."""
    found: list[Any] = []
    cursor = ""
    for limit in ROWS:
        found, cursor = read(limit)
        text = json.dumps(_cut(strict({**more, "rows": found, "next": cursor}), CUT), ensure_ascii=True)
        if tokens(text) <= LIMIT:
            return text
    return answer({**more, "rows": found, "next": cursor})


def part(text: str, cursor: str) -> str:
    """The piece of a long text that begins at a cursor, and the cursor of the next piece; cut between lines."""
    start = _offset(cursor, len(text))
    end, most = start, LIMIT - 60
    for line in text[start:].splitlines(keepends=True):
        if tokens(json.dumps(text[start : end + len(line)])) > most:
            break
        end += len(line)
    if end == start:
        end = min(len(text), start + most)
    return json.dumps({"text": text[start:end], "next": str(end) if end < len(text) else ""})


def _offset(cursor: str, most: int) -> int:
    if not cursor:
        return 0
    if not (cursor.isascii() and cursor.isdecimal() and int(cursor[:12]) <= most):
        raise BadInput("there is no such cursor", hint="give `next` of the answer before, or nothing")
    return int(cursor)


def _cut(value: Any, most: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= most else f"{value[:most]}..."
    if isinstance(value, dict):
        return {key: _cut(one, most) for key, one in value.items()}
    return [_cut(one, most) for one in value] if isinstance(value, list) else value


def _shortened(value: Any, most: int) -> Any:
    if isinstance(value, dict):
        return {key: _shortened(one, most) for key, one in value.items()}
    return [_shortened(one, most) for one in value[:most]] if isinstance(value, list) else value
