"""A device child that writes down what the run would look like on the hardware."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from neuronqa.device.neuron import profile
from neuronqa.device.neuron.timeline.events import TimelineRecording
from neuronqa.device.neuron.timeline.schedule import schedule
from neuronqa.device.neuron.timeline.trace import trace
from neuronqa.device.protocol import Adapter, Device, Recording
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.observation import Observation, OpUse, Placement, Progress
from neuronqa.worker import device_child
from neuronqa.worker.reference import Build
from neuronqa.worker.training import Marks

TRACE_FILE: Final = "trace.json"


def record(
    request: Mapping[str, Any], build: Build, adapter: Callable[[str], Adapter], emit: Callable[[Progress], None]
) -> None:
    """Run what a device request asks for, and leave `trace.json` beside the observation."""
    device_child.observe(request, build, adapter, emit, _Tracing(request))


class _Both:
    """The device's own recording, which knows what fell back, and the timeline's, which knows the order."""

    def __init__(self, own: Recording, timeline: TimelineRecording) -> None:
        self._own = own
        self.timeline = timeline

    def start(self) -> None:
        self._own.start()
        self.timeline.start()

    def stop(self) -> None:
        self.timeline.stop()
        self._own.stop()

    def ops(self) -> tuple[OpUse, ...]:
        return self._own.ops()

    @property
    def complete(self) -> bool:
        return self._own.complete


class _Tracing(device_child.Watching):
    repeats = False

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._request = request
        self._profile = profile.load(BuildOrder.from_json(request["order"]).profile)
        self._recording: _Both | None = None

    def recording(self, device: Device, mark: Marks) -> Recording:
        own = super().recording(device, mark)
        memory: Callable[[], int] = getattr(device, "memory_now", device.memory_peak)
        self._recording = _Both(own, TimelineRecording(self._profile.hardware, memory))
        return self._recording

    def report(self, observation: Observation) -> Observation:
        if self._recording is not None:
            hardware = self._profile.hardware
            fallen = frozenset(use.op for use in observation.ops if use.placement is Placement.CPU)
            placed = schedule(self._recording.timeline.events, fallen, hardware)
            about = {"profile": self._profile.name, "variant": self._request["variant"], "fell_back": sorted(fallen)}
            written = json.dumps(trace(placed, hardware, about))
            (Path(self._request["out"]) / TRACE_FILE).write_text(written, encoding="utf-8")
        return replace(observation, role="timeline")
