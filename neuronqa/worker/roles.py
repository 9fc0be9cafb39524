"""What an isolated child is told to be. Called in a forked child; leaves files, returns nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, assert_never

from neuronqa.device import registry
from neuronqa.domain.observation import Progress
from neuronqa.domain.workload import WorkloadKind
from neuronqa.worker import (
    canary,
    deviation,
    device_child,
    exchange,
    extraction,
    location,
    planting,
    reference,
    script,
    timeline,
)
from neuronqa.workload.build import build


class Role(StrEnum):
    """The roles that run models. The judge runs none."""

    REFERENCE = "reference"
    DEVICE = "device"
    DEVIATION = "deviation"
    """A device child that looks for the operator to blame."""
    TIMELINE = "timeline"
    """A device child that records what engine would do what when."""
    LOCATION = "location"
    """A device child that notes where in the source each operator is called."""
    EXTRACTION = "extraction"
    """A device child that leaves its model and the arguments of one operator for a script."""
    PLANTING = "planting"
    """A device child that is planted one fault after another."""
    CANARY = "canary"
    """Runs no model: does arithmetic with a known answer, to find machines that get it wrong."""


def run(role: str, request: Mapping[str, Any], emit: Callable[[Progress], None]) -> None:
    """Play `role` as `request` says.

    reference: `{"workload", "variant", "steps", "out"}` and, if there is another reference of the same workload,
    `"known"`: its folder; device, location and timeline: `{"workload", "variant", "order", "reference", "out", "steps",
    "last_op_file"}`; deviation: the same and `"thresholds"`, `"seconds"`; extraction: the same and `"operator"`,
    `"dtype"`; planting: as deviation and `"plants"`; canary: `{"out"}`. `emit` is told every change of progress.
    Whatever the model or the device does wrong is written down; what raises is a fault of ours.
    """
    played = Role(role)
    if played is not Role.CANARY and request["workload"]["kind"] == WorkloadKind.SCRIPT:
        _script(played, request, emit)
        return
    match played:
        case Role.REFERENCE:
            reference.record(request, _builder(request.get("known", "")), emit)
        case Role.DEVICE:
            device_child.observe(request, _builder(request["reference"]), registry.adapter, emit)
        case Role.DEVIATION:
            deviation.search(request, _builder(request["reference"]), registry.adapter, emit)
        case Role.TIMELINE:
            timeline.record(request, _builder(request["reference"]), registry.adapter, emit)
        case Role.LOCATION:
            location.locate(request, _builder(request["reference"]), registry.adapter, emit)
        case Role.EXTRACTION:
            extraction.extract(request, _builder(request["reference"]), registry.adapter, emit)
        case Role.PLANTING:
            planting.plant_in_turn(request, _builder(request["reference"]), registry.adapter, emit)
        case Role.CANARY:
            canary.sing(request)
        case unknown:
            assert_never(unknown)


def _script(role: Role, request: Mapping[str, Any], emit: Callable[[Progress], None]) -> None:
    """A script is run; that is all that can be done with it: it is no module whose operators could be looked at."""
    if role is Role.REFERENCE:
        script.record(request, emit)
    elif role is Role.DEVICE:
        script.observe(request, registry.adapter, emit)


def _builder(known: str) -> reference.Build:
    """Builds as the reference in the folder `known` was built, so that nothing is found out twice."""
    return partial(build, adaptation=exchange.read_adaptation(Path(known)) if known else None)
