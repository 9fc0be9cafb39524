"""A sweep's progress for Prometheus, on request: text on a port of loopback, answered between two looks at the fleet.

There is no thread for it: the driver forks and leaves networks, and a scrape can wait for a fifth of a second.
"""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from typing import Final, Protocol

from neuronqa.errors import EnvironmentFault
from neuronqa.sweep.driver import Progress

_REQUEST: Final = 4096
_PATIENCE_S: Final = 0.2


class _Display(Protocol):
    def stage(self, text: str) -> None: ...

    def show(self, progress: Progress) -> None: ...


class Metrics:
    """A display around another that also answers scrapes. Raises EnvironmentFault if the port is taken."""

    def __init__(self, inner: _Display, port: int) -> None:
        self._inner = inner
        try:
            self._listening = socket.create_server(("127.0.0.1", port))
        except OSError as error:
            raise EnvironmentFault(
                f"metrics cannot be served: {error.strerror}", where=f"port {port}", hint="give --metrics another"
            ) from error
        self._listening.setblocking(False)

    @property
    def port(self) -> int:
        return int(self._listening.getsockname()[1])

    def stage(self, text: str) -> None:
        self._inner.stage(text)

    def show(self, progress: Progress) -> None:
        self._inner.show(progress)
        with suppress(BlockingIOError):
            while True:
                self._answer(self._listening.accept()[0], exposition(progress))

    def _answer(self, caller: socket.socket, text: str) -> None:
        with caller, suppress(OSError):
            caller.settimeout(_PATIENCE_S)
            caller.recv(_REQUEST)
            head = "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n"
            caller.sendall(f"{head}Content-Length: {len(text)}\r\n\r\n{text}".encode("ascii"))

    def close(self) -> None:
        self._listening.close()


def exposition(progress: Progress) -> str:
    """The progress in Prometheus' text format."""
    values = [
        ("cases_planned", "gauge", "Cases this leg means to execute.", progress.planned),
        ("cases_done_total", "counter", "Cases executed.", progress.done),
        ("jobs_lost_total", "counter", "Jobs that were lost with their workers.", progress.lost),
        ("control_misses_total", "counter", "Controls judged wrongly.", progress.control_misses),
        ("workers", "gauge", "Workers that are ready.", progress.workers),
        ("running_seconds", "gauge", "Seconds since this leg began.", round(time.monotonic() - progress.started, 3)),
    ]
    lines = []
    for name, kind, words, value in values:
        lines += [f"# HELP neuronqa_{name} {words}", f"# TYPE neuronqa_{name} {kind}", f"neuronqa_{name} {value}"]
    lines += [
        "# HELP neuronqa_failing_workloads_total Workloads by the stage of their first failure.",
        "# TYPE neuronqa_failing_workloads_total counter",
        *(f'neuronqa_failing_workloads_total{{stage="{stage}"}} {n}' for stage, n in sorted(progress.failures.items())),
    ]
    return "\n".join(lines) + "\n"
