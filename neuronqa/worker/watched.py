"""One forked child as it can be seen from outside: its process, its status page, what it prints, how it ended."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from enum import Enum
from pathlib import Path
from typing import Any, Final

from neuronqa.domain.observation import Exit
from neuronqa.worker import frames, limits
from neuronqa.worker.capture import HeadAndTail
from neuronqa.worker.handle import ZygoteHandle

ANSWER_S: Final = 60.0
"""A zygote that should answer and does not for so long is lost. Sweeping up a fork bomb takes its time."""
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
    RANK = "neuronqa: killed, another rank had ended"


class Watched:
    """Made by a fork, which may raise ZygoteLost. To be closed."""

    def __init__(self, zygote: ZygoteHandle, task: frames.Task, mark_file: Path, *, more: bool) -> None:
        self.task = task
        self.killed: Killed | None = None
        self.ended: dict[str, Any] | None = None
        """What its zygote told of its end."""
        self._printed = HeadAndTail()
        self._open = contextlib.ExitStack()
        with contextlib.ExitStack() as guard:
            guard.callback(self.close)
            self._fork(zygote, mark_file, more=more)
            guard.pop_all()

    def close(self) -> None:
        self._open.close()

    def _keep(self, descriptor: int) -> int:
        self._open.callback(os.close, descriptor)
        return descriptor

    def _fork(self, zygote: ZygoteHandle, mark_file: Path, *, more: bool) -> None:
        self._mark = self._keep(os.open(mark_file, os.O_RDONLY | os.O_CLOEXEC))
        self._stack = self._keep(frames.memory_file("stack", b""))
        page = self._keep(frames.new_page())
        self._page = frames.StatusPage(page)
        self._open.callback(self._page.close)
        self.output, theirs = os.pipe()
        self._keep(self.output)
        os.set_blocking(self.output, False)
        order = frames.memory_file("task", self.task.to_bytes())
        self.began = time.monotonic()
        try:
            zygote.tell({"kind": "fork", "more": more}, [order, page, theirs, self._stack])
            self.base, descriptors = zygote.answer(ANSWER_S)
        finally:
            os.close(theirs)
            os.close(order)
        self._process = self._keep(descriptors[0])

    @property
    def pid(self) -> int:
        """Its number among the members of its zygote's family."""
        return int(self.base["pid"])

    @property
    def started(self) -> float:
        """When its role began, on the monotonic clock; 0 for not yet."""
        return self._page.read().started

    @property
    def well(self) -> bool:
        """Did it end, and as it should?"""
        return self.ended is not None and self.ended["status"] == 0 and self._page.read().done

    def kill(self, why: Killed) -> None:
        """Kill the process; its zygote kills the rest of the family when it reaps it."""
        self.killed = why
        with contextlib.suppress(ProcessLookupError):
            if why is Killed.MEMORY:
                signal.pidfd_send_signal(self._process, signal.SIGUSR1)  # it dumps its stack
                time.sleep(_DUMP_S)
            signal.pidfd_send_signal(self._process, signal.SIGKILL)

    def read(self) -> bool:
        """Take what the child printed; False at its end."""
        try:
            data = os.read(self.output, _READ)
        except BlockingIOError:
            return True
        self._printed.add(data)
        return bool(data)

    def drain(self) -> None:
        """Take what is still in the pipe. Everybody who could write more is dead."""
        while True:
            before = self._printed.total
            if not self.read() or self._printed.total == before:
                return

    def describe(self) -> Exit:
        """How it ended, once that was told."""
        assert self.ended is not None
        ended, marks, memory = self.ended, self._page.read(), self.task.memory_mb * limits.MEBIBYTE
        began = min(max(marks.started, self.began), ended["at"]) if marks.started else ended["at"]
        finished = min(max(marks.finished, began), ended["at"]) if marks.done else ended["at"]
        wall = finished - began
        code = os.waitstatus_to_exitcode(ended["status"])
        over = ended["peak"] - self.base["resident"] > memory
        printed = self._printed.text()
        return Exit(
            done=marks.done and code == 0,
            progress=marks.progress,
            signal=signal_name(-code) if code < 0 else "",
            code=code if code >= 0 else None,
            timed_out=self.killed is Killed.DEADLINE or wall > self.task.deadline_s,
            memory_exceeded=self.killed is Killed.MEMORY or (over and self.killed is None),
            last_op=frames.content(self._mark, _MARK_LIMIT).partition(b"\0")[0].decode("utf-8", "replace"),
            stack=case_stack(frames.content(self._stack, _STACK_LIMIT).decode("utf-8", "replace")),
            stderr_tail=f"{printed}\n{self.killed.value}".lstrip() if self.killed else printed,
            peak_rss=ended["peak"],
            cpu_s=ended["cpu_s"],
            wall_s=wall,
            fault=self._fault(marks, printed),
        )

    def _fault(self, marks: frames.Marks, printed: str) -> str:
        if self.killed is Killed.SETUP:
            return Killed.SETUP.value
        if not marks.fault:
            return ""
        return printed.strip().rpartition("\n")[2] or "the role failed without a word"


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
