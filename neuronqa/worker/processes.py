"""Processes as /proc shows them (proc(5)), read from outside. What is gone reads as nothing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_ZYGOTE: Final = "1"
"""Its number in a namespace of its own."""


class Family:
    """The processes below a zygote, whatever became of their parents.

    `proc` is the zygote's own /proc if it has a process namespace: then whoever is there is of the family. Without one
    the family is found by descent, through the threads of every member. Looking at threads makes their end dear (some
    milliseconds of kernel time in wait4, for the directory entries), so a namespace is the cheaper way by far.
    """

    def __init__(self, zygote: int, proc: Path | None) -> None:
        self._zygote = zygote
        self._proc = proc

    def members(self) -> list[int]:
        """Their numbers in the namespace they are looked at in."""
        if self._proc is None:
            return descendants(self._zygote)
        return [int(entry.name) for entry in self._proc.iterdir() if entry.name.isdigit() and entry.name != _ZYGOTE]

    def resident(self, members: Iterable[int]) -> int:
        """Bytes of memory that are theirs to use: anonymous and shared, not mapped files."""
        return sum(memory(pid, "RssAnon", "RssShmem", proc=self._proc or _PROC) for pid in members)

    def proportional(self, members: Iterable[int]) -> int:
        """The same with each shared page divided among its users: exact for many processes, and slow."""
        return sum(_proportional(pid, self._proc or _PROC) for pid in members)


def memory(pid: int | str, *names: str, proc: Path = _PROC) -> int:
    """The sum of some lines of /proc/PID/status, in bytes."""
    try:
        lines = (proc / str(pid) / "status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.partition(":")[0] in names)


def _proportional(pid: int, proc: Path) -> int:
    try:
        lines = (proc / str(pid) / "smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("Pss_Anon:", "Pss_Shmem:")))


def descendants(pid: int) -> list[int]:
    """Processes below `pid`, nearest first. One that starts or ends meanwhile may be missed."""
    found: list[int] = []
    front = [pid]
    while front:
        front = [child for parent in front for child in children(parent)]
        found += front
    return found


def children(pid: int) -> list[int]:
    """Processes whose parent is `pid`, adopted orphans and zombies included. Empty if it is gone."""
    try:
        tasks = list((_PROC / str(pid) / "task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def parent(pid: int) -> int:
    """0 if it is gone."""
    return int(_stat(pid)[1])


def is_stopped(pid: int) -> bool:
    return _stat(pid)[0] == "T"


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat behind the name: state, parent, ..."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ["X", "0"]
    return text.rpartition(")")[2].split()


def process_of(pidfd: int) -> int:
    """The number, in this process's namespace, of the process a descriptor stands for; 0 if it is gone."""
    for line in Path(f"/proc/self/fdinfo/{pidfd}").read_text().splitlines():
        if line.startswith("Pid:"):
            return max(int(line.split()[1]), 0)
    return 0
