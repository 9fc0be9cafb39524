"""Is the device further from float64 than another device is? A figure beside parity; it decides nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from neuronqa.checks.seen import Reference, Second
from neuronqa.checks.tensors import Arrays, rms

GROUPS: Final = ("output", "loss", "grad", "buffer")
"""Tensors that have an oracle. A step is judged from the gradient it was given, so devices cannot be compared in it."""
FURTHER: Final = 2.0
"""An error this many times the other device's is more than luck."""
SHOWN: Final = 10


@dataclass(frozen=True)
class _Pair:
    """Errors of one tensor on both devices, the other's not below what the CPU's own rounding comes to."""

    name: str
    device: float
    other: float

    @property
    def ratio(self) -> float:
        return self.device / self.other if self.other else 0.0


def compare(reference: Reference, arrays: Arrays, second: Second) -> dict[str, Any]:
    """Evidence: how many deciding tensors were compared, and in which the device is further off than the other."""
    pairs = sorted(_pairs(reference, arrays, second.arrays), key=lambda pair: -pair.ratio)
    further = [pair for pair in pairs if pair.ratio > FURTHER]
    return {
        "device": second.device,
        "compared": len(pairs),
        "further": len(further),
        "largest_ratio": pairs[0].ratio if pairs else None,
        "tensors": [
            {"tensor": pair.name, "error": pair.device, "error_there": pair.other, "ratio": pair.ratio}
            for pair in further[:SHOWN]
        ],
    }


def _pairs(reference: Reference, arrays: Arrays, others: Arrays) -> Iterator[_Pair]:
    for name, one in reference.yardsticks.items():
        if one.group not in GROUPS or one.exact or one.exempt is not None:
            continue
        device, other = (_error(name, reference, given) for given in (arrays, others))
        if device is not None and other is not None:
            yield _Pair(name, device, max(other, one.cpu_error))


def _error(name: str, reference: Reference, arrays: Arrays) -> float | None:
    found, oracle = arrays.get(name), reference.arrays[f"oracle/{name}"]
    if found is None or found.shape != oracle.shape:
        return None
    error = rms(np.asarray(found, dtype=np.float64) - oracle)
    return error if np.isfinite(error) else None
