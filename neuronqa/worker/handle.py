"""A running zygote as its supervisor holds it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from neuronqa.errors import EnvironmentFault, InvariantBroken
from neuronqa.worker import frames, processes, zygote
from neuronqa.worker.confine import Confinement

START_S: Final = 300.0
"""A zygote imports for seconds, on a busy machine for minutes."""
_LEAVE_S: Final = 10.0
_SAID_LIMIT: Final = 64 * 1024


class ZygoteLost(Exception):
    """It died, or no longer answers. Nothing is known of the child it had."""


class ZygoteHandle:
    """Starts a zygote and talks to it. Raises EnvironmentFault if it does not start.

    To be made on the main thread: the kernel ends a zygote with the thread that made it.
    """

    def __init__(self, settings: zygote.Settings) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise InvariantBroken("a zygote was started off the main thread")
        self._proc: int | None = None
        self._errors = frames.memory_file("zygote-output", b"")
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._keeper = subprocess.Popen(
            # -P: nothing is imported from the folder a person happens to stand in.
            [sys.executable, "-P", "-m", "neuronqa.worker.zygote", str(theirs.fileno()), str(os.getpid())],
            pass_fds=[theirs.fileno()],
            env=_environment(settings),
            stdin=subprocess.DEVNULL,
            stdout=self._errors,
            stderr=self._errors,
            start_new_session=True,
        )
        theirs.close()
        self.shared: set[str] = set()
        """Modules that were imported on request."""
        try:
            self._greet(settings)
        except ZygoteLost as lost:
            self.kill()
            raise EnvironmentFault(
                f"the process that runs cases does not start: {lost}",
                where=sys.executable,
                hint="run `neuronqa doctor`",
            ) from lost

    def _greet(self, settings: zygote.Settings) -> None:
        began = time.monotonic()
        self.tell(zygote.order(settings))
        message, descriptors = self.answer(START_S)
        if message["kind"] != "ready":
            raise ZygoteLost(message["error"].strip().splitlines()[-1])
        self.confinement = Confinement(message["confinement"])
        itself, self._proc = descriptors
        self.pid = processes.process_of(itself)
        """The zygote itself, not its keeper."""
        os.close(itself)
        sees = Path(f"/proc/self/fd/{self._proc}") if self.confinement is Confinement.SEALED else None
        self.family = processes.Family(self.pid, sees)
        self.start_s = time.monotonic() - began

    @property
    def alive(self) -> bool:
        return self._keeper.poll() is None

    def tell(self, message: Mapping[str, Any], descriptors: Sequence[int] = ()) -> None:
        try:
            frames.send(self.control, message, descriptors)
        except OSError as error:
            raise ZygoteLost(self._why("it died")) from error

    def answer(self, patience: float) -> tuple[dict[str, Any], list[int]]:
        """Return its next message and descriptors, waiting at most `patience` seconds."""
        ready, _, _ = select.select([self.control], (), (), patience)
        if not ready:
            raise ZygoteLost(self._why(f"it did not answer within {patience:.0f} s"))
        try:
            return frames.receive(self.control)
        except (EOFError, OSError) as error:
            raise ZygoteLost(self._why("it died")) from error

    def _why(self, what: str) -> str:
        said = frames.content(self._errors, _SAID_LIMIT).decode("utf-8", "replace").strip()
        return f"{what} ({said[-300:]})" if said else what

    def close(self) -> None:
        """Let it go. Without a word it would end too, but first make sure that nobody is left to clear up."""
        with contextlib.suppress(ZygoteLost):
            self.tell({"kind": "leave"})
        self.control.close()
        self._end()

    def kill(self) -> None:
        """End it and all it started."""
        self._keeper.send_signal(signal.SIGTERM)
        self.control.close()
        self._end()

    def _end(self) -> None:
        try:
            self._keeper.wait(_LEAVE_S)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        for descriptor in (self._errors, self._proc):
            if descriptor is not None:
                os.close(descriptor)


def _environment(settings: zygote.Settings) -> dict[str, str]:
    hidden = {name: value for name, value in zygote.ENVIRONMENT.items() if not settings.show_accelerators or value}
    return {**os.environ, **hidden, "PYTHONPATH": import_path()}


def import_path() -> str:
    """Where this process finds its modules, for a child interpreter to find the same ones."""
    return os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path if entry)
