"""Runs functions in forked children and hears how they ended."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

SECONDS: Final = 120


@dataclass(frozen=True, slots=True)
class Ended:
    """`error` is empty for a function that returned; `crashed` if the child left no answer at all."""

    answer: str = ""
    error: str = ""
    crashed: bool = False


def forked(function: Callable[[], str], seconds: int = SECONDS) -> Ended:
    """Run `function` in a child whose output goes nowhere; a child that takes longer than `seconds` is killed."""
    return together([function], seconds)[0]


def together(functions: Sequence[Callable[[], str]], seconds: int = SECONDS) -> list[Ended]:
    """Run every function in a child of its own, all at the same time."""
    return [_heard(*started) for started in [_start(function, seconds) for function in functions]]


def _start(function: Callable[[], str], seconds: int) -> tuple[int, int]:
    """The child's process id, and where it will say how it ended."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _become(function, writer, seconds)
    os.close(writer)
    return pid, reader


def _heard(pid: int, reader: int) -> Ended:
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    _, status = os.waitpid(pid, 0)
    if not said:
        code = os.waitstatus_to_exitcode(status)
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return Ended(error=name, crashed=True)
    return Ended(answer=said[1:]) if said[0] == "+" else Ended(error=said[1:])


def _become(function: Callable[[], str], writer: int, seconds: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)
    try:
        said = "+" + function()
    except BaseException as error:  # noqa: BLE001  whatever it is, the parent must hear of it
        last = traceback.extract_tb(error.__traceback__)[-1]
        message = " ".join(str(error).split())[:300]
        said = f"-{type(error).__name__}: {message} ({os.path.basename(last.filename)}:{last.lineno})"  # noqa: PTH119
    with os.fdopen(writer, "w") as pipe:
        pipe.write(said)
    os._exit(0)
