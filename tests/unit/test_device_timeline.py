"""Timelines: an engine does one thing at a time, nothing starts before what it needs, what is modelled says so."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from neuronqa.device.neuron import profile
from neuronqa.device.neuron.cost.engines import Engine
from neuronqa.device.neuron.cost.estimate import Cost, Operand, estimate
from neuronqa.device.neuron.timeline.events import Event
from neuronqa.device.neuron.timeline.schedule import HOST, schedule, summarise
from neuronqa.device.neuron.timeline.trace import trace

HARDWARE = profile.load("trn2-sdk2.33").hardware
NONE: frozenset[str] = frozenset()


def event(engine: Engine, seconds: float, *after: int, op: str = "aten::op") -> Event:
    operand = Operand((4, 4), "float32")
    return Event(op, Cost(engine, seconds, 8, 64, 1), (operand,), after, "model.py:7", False, 1024)


def test_engines_overlap_unless_one_needs_the_other() -> None:
    events = [
        event(Engine.TENSOR, 2.0),
        event(Engine.VECTOR, 1.0),
        event(Engine.VECTOR, 1.0, 0),
        event(Engine.TENSOR, 1.0, 2),
    ]
    placed = schedule(events, NONE, HARDWARE)
    assert [(item.start, item.end) for item in placed] == [(0.0, 2.0), (0.0, 1.0), (2.0, 3.0), (3.0, 4.0)]
    told = summarise(placed, HARDWARE)
    assert told.seconds == 4.0
    assert told.busy == {"Tensor": 0.75, "Vector": 0.5}


def test_what_fell_back_is_on_the_lane_of_the_host() -> None:
    placed = schedule([event(Engine.VECTOR, 1.0, op="aten::maximum")], frozenset({"aten::maximum"}), HARDWARE)
    assert placed[0].lane == HOST
    assert placed[0].end == pytest.approx(64 / (HARDWARE.dma_gbps * 1e9 * HARDWARE.cores_per_device))


def test_products_alone_at_the_peak_have_full_utilisation() -> None:
    shape = Operand((4096, 4096), "bfloat16")
    cost = estimate("mm", [shape, shape], [shape], HARDWARE)
    product = replace(event(Engine.TENSOR, 0.0), cost=cost, operands=(shape, shape, shape))
    assert summarise(schedule([product], NONE, HARDWARE), HARDWARE).mfu == pytest.approx(1.0, rel=0.01)
    waiting = schedule([event(Engine.DMA, cost.seconds), replace(product, after=(0,))], NONE, HARDWARE)
    assert summarise(waiting, HARDWARE).mfu == pytest.approx(0.5, rel=0.01)


def test_a_trace_is_chromes_and_labels_what_is_modelled() -> None:
    placed = schedule([event(Engine.TENSOR, 1e-6), event(Engine.SCALAR, 2e-6, 0)], NONE, HARDWARE)
    made = json.loads(json.dumps(trace(placed, HARDWARE, {"profile": "trn2"})))
    by_phase: dict[str, list[dict[str, object]]] = {}
    for item in made["traceEvents"]:
        by_phase.setdefault(item["ph"], []).append(item)
    slices = by_phase["X"]
    assert [(item["ts"], item["dur"]) for item in slices] == [
        (0, pytest.approx(1.0)),
        (pytest.approx(1.0), pytest.approx(2.0)),
    ]
    assert all(item["args"]["modelled"] and item["args"]["source"] == "model.py:7" for item in slices)  # type: ignore[index]
    assert len(by_phase["s"]) == len(by_phase["f"]) == 1
    assert by_phase["s"][0]["id"] == by_phase["f"][0]["id"]
    assert {item["name"] for item in by_phase["C"]} == {"device memory", "MFU (modelled)"}
    assert "modelled" in made["otherData"]["times"]
    assert made["otherData"]["modelled"]["flops"] == 8


def test_an_empty_run_has_an_empty_trace() -> None:
    made = trace([], HARDWARE, {})
    assert made["otherData"]["modelled"]["mfu"] == 0
    assert all(item["ph"] == "M" for item in made["traceEvents"])
