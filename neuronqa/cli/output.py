"""Where things are printed: results on stdout, progress on stderr, JSON without decoration."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from neuronqa.domain.identity import strict


class _Out(Console):
    """Goes on when nobody reads any more (`| head`): the exit code is still wanted."""

    def on_broken_pipe(self) -> None:
        _silence()


_UNSEEN = 160
"""Columns where nobody watches: a log or a pipe cuts no cell for want of a terminal's width."""


def _width() -> int | None:
    return None if sys.stdout.isatty() or "COLUMNS" in os.environ else _UNSEEN


out = _Out(highlight=False, soft_wrap=False, width=_width())
err = Console(stderr=True, highlight=False)


def print_json(value: Mapping[str, Any]) -> None:
    """Strict, indented, ASCII JSON on stdout: safe to pipe whatever the strings in it came from."""
    try:
        json.dump(strict(value), sys.stdout, indent=2, ensure_ascii=True, allow_nan=False)
        sys.stdout.write("\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _silence()


def _silence() -> None:
    """Send what is still to be printed nowhere. (docs.python.org/3/library/signal.html#note-on-sigpipe)"""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
