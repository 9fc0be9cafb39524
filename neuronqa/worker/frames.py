"""What supervisor and zygote say to each other, and the page on which a child marks how far it is."""

from __future__ import annotations

import json
import mmap
import os
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from neuronqa.domain.observation import Progress

MESSAGE_LIMIT: Final = 64 * 1024
PAGE_SIZE: Final = 4096
_PAGE: Final = struct.Struct("=ddBB")
_STEPS: Final = tuple(Progress)
_RUNNING, _DONE, _FAULT = 0, 0xD0, 0xFA


@dataclass(frozen=True, kw_only=True)
class Task:
    """One child to fork: which role it plays and what it may use."""

    role: str
    request: Mapping[str, Any]
    scratch: str
    """Its working, home and temporary folder; empty, private, gone with it."""
    writable: tuple[str, ...]
    """The folders it may write below; what they hold counts as memory."""
    deadline_s: float
    memory_mb: int

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Task:
        value = json.loads(data)
        value["writable"] = tuple(value["writable"])
        return cls(**value)


def send(control: socket.socket, message: Mapping[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send one message with copies of `descriptors`. One message is one packet: two never arrive as one."""
    socket.send_fds(control, [json.dumps(message).encode()], descriptors)


def receive(control: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Return the next message and its descriptors. Raises EOFError when the other end is gone."""
    try:
        data, descriptors, _, _ = socket.recv_fds(control, MESSAGE_LIMIT, 8)
    except ConnectionResetError:
        data, descriptors = b"", []
    if not data:
        raise EOFError("the other end of the control socket is gone")
    return json.loads(data), list(descriptors)


@dataclass(frozen=True, kw_only=True)
class Marks:
    """What a page says. Times are of the monotonic clock, 0 for not yet."""

    started: float
    finished: float
    progress: Progress
    done: bool
    fault: bool
    """The harness itself failed in the child: nothing is known of the case."""


class StatusPage:
    """Memory that a child shares with its supervisor.

    A case that closes every descriptor, redirects its output or dies at once cannot lose what is written here.
    """

    def __init__(self, descriptor: int) -> None:
        self._map = mmap.mmap(descriptor, PAGE_SIZE)
        self._values: list[Any] = [0.0, 0.0, 0, _RUNNING]

    def start(self) -> None:
        self._write(started=time.monotonic())

    def mark(self, progress: Progress) -> None:
        self._write(step=_STEPS.index(progress))

    def finish(self) -> None:
        self._write(finished=time.monotonic(), step=_STEPS.index(Progress.DONE), state=_DONE)

    def fail(self) -> None:
        self._write(finished=time.monotonic(), state=_FAULT)

    def _write(self, **changes: float) -> None:
        names = ("started", "finished", "step", "state")
        self._values = [changes.get(name, old) for name, old in zip(names, self._values, strict=True)]
        _PAGE.pack_into(self._map, 0, *self._values)

    def read(self) -> Marks:
        """Total: whatever a case scribbled over the page, the answer is a value."""
        started, finished, step, state = _PAGE.unpack_from(self._map, 0)
        return Marks(
            started=started if started > 0 else 0.0,
            finished=finished if finished > 0 else 0.0,
            progress=_STEPS[step] if step < len(_STEPS) else Progress.STARTED,
            done=state == _DONE,
            fault=state == _FAULT,
        )

    def close(self) -> None:
        self._map.close()


def memory_file(name: str, content: bytes) -> int:
    """Return the descriptor of a file in memory that holds `content`."""
    descriptor = os.memfd_create(name)
    os.write(descriptor, content)
    return descriptor


def new_page() -> int:
    """Return the descriptor of an empty status page."""
    return memory_file("page", b"\0" * PAGE_SIZE)


def content(descriptor: int, limit: int) -> bytes:
    """Return the first `limit` bytes of a file, wherever its offset is."""
    return os.pread(descriptor, limit, 0)
