"""What a forked child does before and after it plays its role. It never returns."""

from __future__ import annotations

import faulthandler
import importlib
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from neuronqa.domain.observation import Progress
from neuronqa.worker import confine, limits, linux
from neuronqa.worker.confine import Confinement
from neuronqa.worker.frames import StatusPage, Task

Role = Callable[[str, Mapping[str, Any], Callable[[Progress], None]], None]
"""`(role, request, emit)`: leaves what it found in files; a failing case is not an exception."""

FAULT_CODE = 70
"""EX_SOFTWARE of sysexits.h."""


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What every child of one zygote shares."""

    zygote: int
    confinement: Confinement
    uid: int | None
    work: str
    """The folder that holds everything children read and write."""
    entry: str
    """`module:function`, a :data:`Role`."""


class _Marker:
    """Hands marks to the page, for the child alone: a copy that a case forks of itself must not speak for it."""

    def __init__(self, page: StatusPage) -> None:
        self._page = page
        self._owner = os.getpid()

    def __call__(self, progress: Progress) -> None:
        self.leave_if_copy()
        self._page.mark(progress)

    def leave_if_copy(self) -> None:
        if os.getpid() != self._owner:
            os._exit(1)


def play(task: Task, page: StatusPage, output: int, stack: int, around: Surroundings) -> NoReturn:
    """Shut this process in, play the role, say so, and leave.

    `output` receives stdout and stderr, `stack` the Python stack at a fatal signal or at the deadline.
    """
    marker = _Marker(page)
    code = FAULT_CODE
    try:
        _redirect(output, stack)
        _shut_in(task, around)
        role = _resolve(around.entry)
        faulthandler.enable(limits.SPARE_DESCRIPTOR, all_threads=True)
        faulthandler.register(signal.SIGUSR1, limits.SPARE_DESCRIPTOR, all_threads=True)
        page.start()
        faulthandler.dump_traceback_later(task.deadline_s, file=limits.SPARE_DESCRIPTOR)
        code = _act(role, task, page, marker)
    except BaseException:  # noqa: BLE001 - a forked process must not return into the zygote's code
        marker.leave_if_copy()
        page.fail()
        traceback.print_exc()
    _flush()
    os._exit(code)


def _act(role: Role, task: Task, page: StatusPage, marker: _Marker) -> int:
    """Return the exit code. An exit or interrupt that the case asks for is an exit, not a fault of ours."""
    try:
        role(task.role, task.request, marker)
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(left.code is not None)
    except KeyboardInterrupt:
        traceback.print_exc()
        return 128 + signal.SIGINT
    marker.leave_if_copy()
    page.finish()
    return 0


def _redirect(output: int, stack: int) -> None:
    """Leave four descriptors open: stdin, stdout, stderr, and one for stacks where no case will find it."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, nothing), (1, output), (2, output), (limits.SPARE_DESCRIPTOR, stack)):
        os.dup2(source, target, inheritable=target <= 2)
    os.closerange(3, limits.SPARE_DESCRIPTOR)
    os.closerange(limits.SPARE_DESCRIPTOR + 1, os.sysconf("SC_OPEN_MAX"))
    sys.stdin = os.fdopen(0, "r", closefd=False)
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False, errors="replace")
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False, errors="replace")


def _shut_in(task: Task, around: Surroundings) -> None:
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    scratch = Path(task.scratch)
    limits.offer_to_oom_killer()
    if around.confinement is Confinement.SEALED:
        writable = tuple(map(Path, task.writable))
        confine.seal(Path(around.work), writable, task.memory_mb * limits.MEBIBYTE)
    limits.apply(task.memory_mb, own_user=around.uid is not None)
    confine.give_up_power(around.confinement, around.uid)
    linux.die_with_parent(around.zygote)
    os.umask(0o077)
    os.chdir(scratch)
    _settle_in(scratch)


def _settle_in(scratch: Path) -> None:
    """Temporary files, caches and the home folder are the child's own."""
    for name in ("TMPDIR", "TMP", "TEMP", "HOME"):
        os.environ[name] = str(scratch)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(scratch / "inductor")
    os.environ["USER"] = os.environ["LOGNAME"] = "neuronqa"  # getpass.getuser: the user has no name
    os.environ.pop("XDG_CACHE_HOME", None)
    codecache: Any = sys.modules.get("torch._inductor.codecache")
    if codecache is not None:  # it chose a folder before the fork, which is not the child's to write
        codecache._HEADER_DIR = str(scratch / "inductor" / "headers")
        codecache._HEADER_LOCK_DIR = str(scratch / "inductor" / "headers" / "locks")
    tempfile.tempdir = None


def _resolve(entry: str) -> Role:
    module, _, name = entry.partition(":")
    role: Role = getattr(importlib.import_module(module), name)
    return role


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue  # the case closed it
