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


out = _Out(highlight=False, soft_wrap=False)
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
