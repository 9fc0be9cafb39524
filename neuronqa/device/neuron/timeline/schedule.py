"""Places recorded operators in time: each engine does one thing at a time, and nothing starts before what it needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from neuronqa.device.neuron.cost.engines import Engine
from neuronqa.device.neuron.cost.estimate import PARTITIONS
from neuronqa.device.neuron.profile import Hardware
from neuronqa.device.neuron.timeline.events import Event

HOST: Final = "Host"
"""The lane of what fell back to the CPU. Only moving the operands is modelled, so it is too short."""


@dataclass(frozen=True, slots=True)
class Placed:
    """An event with its lane and its modelled time, in seconds from the start."""

    event: Event
    lane: str
    start: float
    end: float


def schedule(events: Sequence[Event], fallen: frozenset[str], hardware: Hardware) -> list[Placed]:
    """As early as engines and results allow, in the order of the calls on each engine.

    `fallen`: names of operators that the device ran on the CPU.
    """
    free: dict[str, float] = defaultdict(float)
    placed: list[Placed] = []
    for event in events:
        lane = HOST if event.op in fallen else event.cost.engine.value
        seconds = _transfer(event, hardware) if lane == HOST else event.cost.seconds
        start = max([free[lane], *(placed[index].end for index in event.after)])
        placed.append(Placed(event, lane, start, start + seconds))
        free[lane] = start + seconds
    return placed


def _transfer(event: Event, hardware: Hardware) -> float:
    return sum(operand.nbytes for operand in event.operands) / (hardware.dma_gbps * 1e9 * hardware.cores_per_device)


@dataclass(frozen=True, slots=True)
class Summary:
    """A timeline in numbers. All modelled, but for the memory."""

    seconds: float
    flops: int
    mfu: float
    """Model FLOPs utilisation: of what the tensor engine could multiply in that time, in the dtypes that were used."""
    busy: dict[str, float]
    """Share of the time, by lane."""
    nbytes: int
    instructions: int
    memory_peak: int
    """Bytes, as the device counted them."""


def summarise(placed: Sequence[Placed], hardware: Hardware) -> Summary:
    """Add up a timeline."""
    seconds = max((item.end for item in placed), default=0.0)
    busy: dict[str, float] = defaultdict(float)
    for item in placed:
        busy[item.lane] += item.end - item.start
    products = [item.event for item in placed if item.lane == Engine.TENSOR.value]
    at_peak = sum(event.cost.flops / peak_flops(event, hardware) for event in products)
    return Summary(
        seconds=seconds,
        flops=sum(event.cost.flops for event in products),
        mfu=at_peak / seconds if seconds else 0.0,
        busy={lane: share / seconds for lane, share in sorted(busy.items()) if seconds},
        nbytes=sum(item.event.cost.nbytes for item in placed),
        instructions=sum(item.event.cost.instructions for item in placed),
        memory_peak=max((item.event.memory for item in placed), default=0),
    )


def peak_flops(event: Event, hardware: Hardware) -> float:
    """What the tensor engine does in a second, in the dtype of the first operand."""
    wide = bool(event.operands) and event.operands[0].dtype == "float32"
    passes = hardware.float32_passes if wide else 1
    return 2 * PARTITIONS * PARTITIONS * hardware.tensor_ghz * 1e9 * hardware.cores_per_device / passes
