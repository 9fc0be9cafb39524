"""Where in the source an operator is called: a device child that notes the Python line of every operator's first call.

Operators of backward are placed at the line whose forward made them (autograd's anomaly mode keeps it).
"""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Final

import torch

import neuronqa
from neuronqa.device.dispatch import DispatchRecording
from neuronqa.device.outside import operator
from neuronqa.device.protocol import Adapter, Device, Recording
from neuronqa.domain.observation import Progress
from neuronqa.worker import device_child, exchange
from neuronqa.worker.device_child import Watching
from neuronqa.worker.reference import Build
from neuronqa.worker.training import Marks

_INNER: Final = (str(Path(torch.__file__).parent), str(Path(neuronqa.__file__).parent), "<")
"""Frames below these say nothing about a model."""
_INSTALLED: Final = tuple({sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib")})
_FRAME: Final = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')

Place = tuple[str, int, str]
"""File, line, function."""


def locate(
    request: Mapping[str, Any],
    build: Build,
    adapter: Callable[[str], Adapter],
    emit: Callable[[Progress], None],
) -> None:
    """Run what a device request asks for; leaves `places.json`: operator -> [file, line, function, progress]."""
    watching = _Locating()
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        device_child.observe(request, build, adapter, emit, watching)
    exchange.write_places(Path(request["out"]), watching.places.found if watching.places else {})


class _Locating(Watching):
    repeats = False

    def __init__(self) -> None:
        self.places: Places | None = None

    def recording(self, device: Device, mark: Marks) -> Recording:
        device.recording()  # A device may arm there what it was ordered to.
        self.places = Places(mark)
        return self.places


class Places(DispatchRecording):
    """Notes each operator's first call. A recording like a device's own, so that it pauses with the harness."""

    def __init__(self, mark: Marks) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._mark = mark
        self.found: dict[str, tuple[str, int, str, str]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = operator(func)
        if name not in self.found:
            place = innermost(_forward_of(torch._C._current_autograd_node()) or _stack())
            if place is not None:
                self.found[name] = (*place, self._mark.current.value)
        return func(*args, **(kwargs or {}))


def innermost(frames: Iterable[Place]) -> Place | None:
    """The last of `frames` (outermost first) in a person's own files; else in a library that is built on torch."""
    outside = [frame for frame in frames if not frame[0].startswith(_INNER)]
    own = [frame for frame in outside if not frame[0].startswith(_INSTALLED)]
    return next(iter((own or outside)[::-1]), None)


def frames_of(text: str) -> Iterator[Place]:
    """The frames in a printed traceback."""
    for found in _FRAME.finditer(text):
        yield found["file"], int(found["line"]), found["function"]


def _stack() -> list[Place]:
    frame: FrameType | None = sys._getframe(1)
    stack = []
    while frame is not None:
        stack.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return stack[::-1]


def _forward_of(node: Any) -> list[Place]:
    """Where the forward of a running backward node was called; nothing outside of backward."""
    if node is None:
        return []
    return list(frames_of("".join(node.metadata.get("traceback_", ()))))
