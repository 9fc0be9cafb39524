"""Watches one child from its fork to its end, keeps it within its limits, and says how it ended."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from neuronqa.domain.observation import Exit
from neuronqa.worker import folders, frames, limits, processes
from neuronqa.worker.capture import HeadAndTail
from neuronqa.worker.handle import ZygoteHandle, ZygoteLost

GRACE_S: Final = 0.3
"""Between the deadline, at which a child dumps its stack, and its death."""
SETUP_S: Final = 20.0
"""From the fork to the first line of the role."""
ANSWER_S: Final = 60.0
"""A zygote that should answer and does not for so long is lost. Sweeping up a fork bomb takes its time."""
_LOOK_S: Final = 0.1
_DUMP_S: Final = 0.05
_READ: Final = 1 << 16
_STACK_LIMIT: Final = 16 * 1024
_MARK_LIMIT: Final = 128


class Killed(Enum):
    """Why a child was killed; the value is the note left below what it printed."""

    DEADLINE = "neuronqa: killed, it passed its deadline"
    MEMORY = "neuronqa: killed, it used more memory than its limit"
    PROCESSES = "neuronqa: killed, it had more processes than its limit"
    SETUP = "neuronqa: killed, its role did not begin"


class Watch:
    """One child. Entering forks it; :meth:`exit` waits for its end. Both may raise ZygoteLost."""

    def __init__(self, zygote: ZygoteHandle, task: frames.Task, mark_file: Path) -> None:
        self._zygote = zygote
        self._task = task
        self._mark_file = mark_file
        self._memory = task.memory_mb * limits.MEBIBYTE
        self._printed = HeadAndTail()
        self._killed: Killed | None = None
        self._killed_at = 0.0
        self._most = 0
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as guard:
            guard.callback(self._open.close)
            self._fork()
            guard.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.close()

    def _keep(self, descriptor: int) -> int:
        self._open.callback(os.close, descriptor)
        return descriptor

    def _fork(self) -> None:
        self._mark = self._keep(os.open(self._mark_file, os.O_RDONLY | os.O_CLOEXEC))
        self._stack = self._keep(frames.memory_file("stack", b""))
        page = self._keep(frames.new_page())
        self._page = frames.StatusPage(page)
        self._open.callback(self._page.close)
        self._output, theirs = os.pipe()
        self._keep(self._output)
        os.set_blocking(self._output, False)
        order = frames.memory_file("task", self._task.to_bytes())
        self._began = time.monotonic()
        try:
            self._zygote.tell({"kind": "fork"}, [order, page, theirs, self._stack])
            self._base, descriptors = self._zygote.answer(ANSWER_S)
        finally:
            os.close(theirs)
            os.close(order)
        self._child = self._keep(descriptors[0])

    def exit(self) -> Exit:
        """Return how the child ended, with nothing of it left running."""
        ended = self._wait()
        self._drain()
        return self._describe(ended)

    def _wait(self) -> dict[str, Any]:
        poller = select.poll()
        poller.register(self._zygote.control, select.POLLIN)
        poller.register(self._output, select.POLLIN)
        look = self._began + _LOOK_S
        while True:
            pause = min(look, self._due()) - time.monotonic()
            ready = {descriptor for descriptor, _ in poller.poll(max(0.0, pause) * 1000)}
            if self._output in ready and not self._read():
                poller.unregister(self._output)
            if self._zygote.control.fileno() in ready:
                return self._zygote.answer(ANSWER_S)[0]
            if (now := time.monotonic()) >= look:
                self._look()
                look = now + max(_LOOK_S, 10 * (time.monotonic() - now))
            if now >= self._due():
                self._expire()

    def _due(self) -> float:
        """When patience ends: with the zygote after a kill, with the case once it began, with its setup before."""
        if self._killed is not None:
            return self._killed_at + ANSWER_S
        started = self._page.read().started
        if started:
            return min(started, time.monotonic()) + self._task.deadline_s + GRACE_S
        return self._began + SETUP_S

    def _expire(self) -> None:
        if self._killed is not None:
            raise ZygoteLost(f"it did not report a killed child within {ANSWER_S:.0f} s")
        self._kill(Killed.DEADLINE if self._page.read().started else Killed.SETUP)

    def _look(self) -> None:
        if processes.is_stopped(self._zygote.pid):
            raise ZygoteLost("it was stopped")
        family = self._zygote.family
        members = family.members()
        if len(members) > limits.PROCESSES:
            self._kill(Killed.PROCESSES)
        kept = sum(folders.size(Path(folder)) for folder in self._task.writable)
        used = family.resident(members) - self._base["anonymous"] + kept
        if used > self._memory and len(members) > 1:
            # Processes share pages, so the sum is too high; this one is exact, and some ms slow.
            used = family.proportional(members) - self._base["anonymous"] + kept
        self._most = max(self._most, used)
        if used > self._memory:
            self._kill(Killed.MEMORY)

    def _kill(self, why: Killed) -> None:
        """Kill the child; the zygote kills the rest of its family when it reaps it."""
        if self._killed is not None:
            return
        self._killed, self._killed_at = why, time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            if why is Killed.MEMORY:
                signal.pidfd_send_signal(self._child, signal.SIGUSR1)  # the child dumps its stack
                time.sleep(_DUMP_S)
            signal.pidfd_send_signal(self._child, signal.SIGKILL)

    def _read(self) -> bool:
        """Take what the child printed; False at its end."""
        try:
            data = os.read(self._output, _READ)
        except BlockingIOError:
            return True
        self._printed.add(data)
        return bool(data)

    def _drain(self) -> None:
        """Take what is still in the pipe. Everybody who could write more is dead."""
        while True:
            before = self._printed.total
            if not self._read() or self._printed.total == before:
                return

    def _describe(self, ended: dict[str, Any]) -> Exit:
        marks = self._page.read()
        began = min(max(marks.started, self._began), ended["at"]) if marks.started else ended["at"]
        finished = min(max(marks.finished, began), ended["at"]) if marks.done else ended["at"]
        wall = finished - began
        code = os.waitstatus_to_exitcode(ended["status"])
        over = ended["peak"] - self._base["resident"] > self._memory
        printed = self._printed.text()
        return Exit(
            done=marks.done and code == 0,
            progress=marks.progress,
            signal=signal_name(-code) if code < 0 else "",
            code=code if code >= 0 else None,
            timed_out=self._killed is Killed.DEADLINE or wall > self._task.deadline_s,
            memory_exceeded=self._killed is Killed.MEMORY or (over and self._killed is None),
            last_op=self._last_op(),
            stack=case_stack(frames.content(self._stack, _STACK_LIMIT).decode("utf-8", "replace")),
            stderr_tail=f"{printed}\n{self._killed.value}".lstrip() if self._killed else printed,
            peak_rss=max(ended["peak"], self._most + self._base["anonymous"]),
            cpu_s=ended["cpu_s"],
            wall_s=wall,
            fault=self._fault(marks, printed),
        )

    def _fault(self, marks: frames.Marks, printed: str) -> str:
        if self._killed is Killed.SETUP:
            return Killed.SETUP.value
        if not marks.fault:
            return ""
        return printed.strip().rpartition("\n")[2] or "the role failed without a word"

    def _last_op(self) -> str:
        return frames.content(self._mark, _MARK_LIMIT).partition(b"\0")[0].decode("utf-8", "replace")


def signal_name(number: int) -> str:
    """`SIGSEGV`; `SIG40` for a real-time signal, which has no name of its own."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


_OURS: Final = tuple(f'File "{Path(__file__).with_name(name)}"' for name in ("zygote.py", "child.py"))


def case_stack(dump: str) -> str:
    """A stack as `faulthandler` writes it, without the frames every child has below its role."""
    lines = dump.splitlines(keepends=True)
    return "".join(line for line in lines if not line.strip().startswith((*_OURS, 'File "<frozen runpy>"')))
