"""How long a sweep may execute: `90s`, `10m`, `2h`, `1h30m`."""

from __future__ import annotations

import re

from neuronqa.errors import UsageError

_BUDGET = re.compile(r"(?:(?P<h>[0-9]+)h)?(?:(?P<m>[0-9]+)m)?(?:(?P<s>[0-9]+)s)?")


def parse_budget(text: str) -> float:
    """Seconds. Raises UsageError for anything but hours, minutes and seconds, and for nothing at all."""
    match = _BUDGET.fullmatch(text.strip())
    seconds = 0.0
    if match is not None:
        seconds = sum(int(match[unit] or 0) * size for unit, size in (("h", 3600), ("m", 60), ("s", 1)))
    if seconds <= 0:
        raise UsageError(f"the budget {text!r} does not parse", hint="write e.g. --budget 90s, 10m or 1h30m")
    return float(seconds)
