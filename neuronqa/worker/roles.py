"""What an isolated child is told to be. Called in a forked child; leaves files, returns nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, assert_never

from neuronqa.device import registry
from neuronqa.domain.observation import Progress
from neuronqa.worker import deviation, device_child, reference
from neuronqa.workload.build import build


class Role(StrEnum):
    """The roles that run models. The judge runs none."""

    REFERENCE = "reference"
    DEVICE = "device"
    DEVIATION = "deviation"
    """A device child that looks for the operator to blame."""


def run(role: str, request: Mapping[str, Any], emit: Callable[[Progress], None]) -> None:
    """Play `role` as `request` says.

    reference: `{"workload", "variant", "steps", "out"}`; device: `{"workload", "variant", "order", "reference", "out",
    "steps", "last_op_file"}`; deviation: the same and `"thresholds"`, `"seconds"`. `emit` is told every change of
    progress. Whatever the model or the device does wrong is written down; what raises is a fault of ours.
    """
    match Role(role):
        case Role.REFERENCE:
            reference.record(request, build, emit)
        case Role.DEVICE:
            device_child.observe(request, build, registry.adapter, emit)
        case Role.DEVIATION:
            deviation.search(request, build, registry.adapter, emit)
        case unknown:
            assert_never(unknown)
