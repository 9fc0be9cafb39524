"""Where things are printed: results on stdout, progress on stderr, JSON without decoration."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from neuronqa.domain.identity import strict

out = Console(highlight=False, soft_wrap=False)
err = Console(stderr=True, highlight=False)


def print_json(value: Mapping[str, Any]) -> None:
    """Strict, indented, ASCII JSON on stdout: safe to pipe whatever the strings in it came from."""
    json.dump(strict(value), sys.stdout, indent=2, ensure_ascii=True, allow_nan=False)
    sys.stdout.write("\n")
