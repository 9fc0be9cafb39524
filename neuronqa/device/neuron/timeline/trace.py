"""A timeline in Chrome's trace format, which Perfetto reads too. Everything in it that is modelled says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from neuronqa.device.neuron.cost.engines import Engine
from neuronqa.device.neuron.profile import Hardware
from neuronqa.device.neuron.timeline.schedule import HOST, Placed, peak_flops, summarise

LANES: Final = (*(engine.value for engine in Engine if engine is not Engine.NONE), HOST)
PROCESS: Final = 1
WINDOWS: Final = 100
"""Points of the utilisation counter."""
MICROSECONDS: Final = 1e6


def trace(placed: Sequence[Placed], hardware: Hardware, about: Mapping[str, Any]) -> dict[str, Any]:
    """The trace as JSON: one lane an engine, flows from results to their uses, counters of memory and utilisation."""
    summary = summarise(placed, hardware)
    events = [*_names(), *_slices(placed), *_flows(placed), *_memory(placed), *_utilisation(placed, hardware)]
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {"times": "modelled, not measured", **about, "modelled": asdict(summary)},
    }


def _names() -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "pid": PROCESS, "name": "process_name", "args": {"name": "neuron:0 (modelled)"}}
    for lane, name in enumerate(LANES):
        label = "Host (CPU fallback; only the transfer is modelled)" if name == HOST else f"{name} (modelled)"
        yield {"ph": "M", "pid": PROCESS, "tid": lane, "name": "thread_name", "args": {"name": label}}
        yield {"ph": "M", "pid": PROCESS, "tid": lane, "name": "thread_sort_index", "args": {"sort_index": lane}}


def _at(item: Placed, seconds: float) -> dict[str, Any]:
    return {"pid": PROCESS, "tid": LANES.index(item.lane), "ts": seconds * MICROSECONDS}


def _slices(placed: Sequence[Placed]) -> Iterator[dict[str, Any]]:
    for item in placed:
        event = item.event
        yield {
            "ph": "X",
            "name": event.op,
            "cat": "backward" if event.backward else "forward",
            **_at(item, item.start),
            "dur": (item.end - item.start) * MICROSECONDS,
            "args": {
                "modelled": True,
                "source": event.source,
                "operands": [f"{operand.dtype}{list(operand.shape)}" for operand in event.operands],
                "flops": event.cost.flops,
                "bytes": event.cost.nbytes,
                "instructions": event.cost.instructions,
            },
        }


def _flows(placed: Sequence[Placed]) -> Iterator[dict[str, Any]]:
    number = 0
    for item in placed:
        for index in item.event.after:
            number += 1
            maker = placed[index]
            common = {"cat": "result", "name": "result", "id": number}
            yield {"ph": "s", **common, **_at(maker, maker.start)}
            yield {"ph": "f", "bp": "e", **common, **_at(item, item.start)}


def _memory(placed: Sequence[Placed]) -> Iterator[dict[str, Any]]:
    for item in placed:
        values = {"bytes": item.event.memory}
        yield {"ph": "C", "pid": PROCESS, "name": "device memory", "ts": item.end * MICROSECONDS, "args": values}


def _utilisation(placed: Sequence[Placed], hardware: Hardware) -> Iterator[dict[str, Any]]:
    """The share of the tensor engine's peak that is used, window by window."""
    total = max((item.end for item in placed), default=0.0)
    if not total:
        return
    width = total / WINDOWS
    used = [0.0] * WINDOWS
    for item in placed:
        if item.lane == Engine.TENSOR.value and item.end > item.start:
            at_peak = item.event.cost.flops / peak_flops(item.event, hardware) / (item.end - item.start)
            for window in range(int(item.start / width), min(int(item.end / width), WINDOWS - 1) + 1):
                overlap = min(item.end, (window + 1) * width) - max(item.start, window * width)
                used[window] += max(overlap, 0.0) * at_peak
    for window, seconds in enumerate(used):
        values = {"MFU": round(seconds / width, 6)}
        at = window * width * MICROSECONDS
        yield {"ph": "C", "pid": PROCESS, "name": "MFU (modelled)", "ts": at, "args": values}
