"""Choices a model makes between numbers: right where the oracle's own margin is beyond what rounding may move."""

from __future__ import annotations

from typing import Final

import numpy as np

from neuronqa.checks.tensors import Array, Measured, Yardstick
from neuronqa.domain.outcome import Kind

BOTH: Final = 2.0
"""Two numbers stand against each other, and rounding may move both."""


def compare(name: str, device: Array, oracle: Array, margin: Array, logits: Yardstick) -> Measured:
    """Compare choices. Where the oracle's first and second are closer than rounding moves them, either is right.

    `margin` is the oracle's, `logits` what its numbers are measured by.
    """
    stick = Yardstick(name=name, count=int(oracle.size), exact=True)
    if device.shape != oracle.shape:
        note = f"shape {device.shape} instead of {oracle.shape}"
        return Measured(yardstick=stick, ratio=np.inf, kind=Kind.PARITY_SHAPE, note=note)
    differ = device != oracle
    open_ = margin <= BOTH * logits.peak_tolerance
    wrong = int(np.count_nonzero(differ & ~open_))
    undecided = int(np.count_nonzero(differ & open_))
    note = f"{wrong} of {oracle.size} choices differ" if wrong else ""
    if undecided:
        note = f"{note}{'; ' if note else ''}{undecided} were open, the oracle's margin being below rounding"
    if not wrong:
        return Measured(yardstick=stick, error=0.0, peak=0.0, note=note)
    return Measured(yardstick=stick, error=wrong / oracle.size, ratio=np.inf, kind=Kind.PARITY_SCATTER, note=note)
