"""Collectives: the process group backend `neuron` is gloo on the host, whose memory the device's is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch.distributed as dist


def register() -> None:
    """Register the backend `neuron` for tensors on the device and on the CPU."""
    if not dist.is_available():
        return

    def create(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
        return dist.ProcessGroupGloo(store, rank, size, timeout)

    dist.Backend.register_backend("neuron", create, devices=["neuron", "cpu"])
