"""What a person asked a sweep for: kept with it, so that resuming needs only its name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Dtype, Mode
from neuronqa.sweep.policies import Narrowing

DEFAULT_PROFILE: Final = "trn2-sdk2.33"
EVERY: Final = 100_000
"""Workers asked for where a person named no number on a cluster: as many as it holds."""
DEFAULT_DEVICE: Final = "neuron"
DEFAULT_POLICY: Final = "gating"


def default_workers() -> int:
    """One worker a core this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True, kw_only=True)
class SweepRequest:
    """The options of a sweep."""

    catalog: str
    workers: int
    select: str = ""
    policy: str = DEFAULT_POLICY
    device: str = DEFAULT_DEVICE
    profile: str = DEFAULT_PROFILE
    overlays: tuple[str, ...] = ()
    budget_s: float | None = None
    limit: int | None = None
    mode: Mode | None = None
    dtype: Dtype | None = None
    max_failures: int | None = None
    fresh: bool = False
    """Execute everything, whatever earlier sweeps found."""
    bundle: str = ""
    """The folder of a reference bundle to compare with besides the CPU; on a fleet, the same on every node."""
    seed: int = 0
    address: str = ""
    """Of a Ray cluster that is there already; empty for a closed one of our own on this machine."""

    @classmethod
    def kept(cls, options: Mapping[str, Any], workers: int | None, address: str | None = None) -> SweepRequest:
        """The request a sweep's stored options describe, with `workers` slots, or at an `address`, instead of its own
        if given."""
        values = dict(options)
        values["overlays"] = tuple(values.get("overlays", ()))
        values["mode"] = Mode(values["mode"]) if values.get("mode") else None
        values["dtype"] = Dtype(values["dtype"]) if values.get("dtype") else None
        request = cls(**values)
        request = request if workers is None else replace(request, workers=workers)
        return request if address is None else replace(request, address=address)

    @property
    def narrowing(self) -> Narrowing:
        return Narrowing(mode=self.mode, dtype=self.dtype)

    @property
    def order(self) -> BuildOrder:
        """The device to prepare."""
        return BuildOrder(device=self.device, profile=self.profile, overlays=self.overlays)
