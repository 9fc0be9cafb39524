"""Pure judgement: observations in, outcome and evidence out. No device, no process, no I/O, NumPy only.

A check of a device is a module with `ANSWERS`, the :class:`Check` it answers, and `judge(seen: Seen) -> Finding`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neuronqa.checks.seen import Seen
    from neuronqa.domain.finding import Finding
    from neuronqa.domain.outcome import Check


@cache
def device_checks() -> Mapping[Check, Callable[[Seen], Finding]]:
    """Every check of a device, found among the modules of this package. Raises ValueError where two answer one."""
    found: dict[Check, Callable[[Seen], Finding]] = {}
    for module in pkgutil.iter_modules(__path__):
        loaded = import_module(f"{__name__}.{module.name}")
        answers = getattr(loaded, "ANSWERS", None)
        if answers is None:
            continue
        if answers in found:
            raise ValueError(f"two modules answer {answers.value}, the second is {loaded.__name__}")
        found[answers] = loaded.judge
    return found
