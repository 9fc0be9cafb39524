"""What a child may use, set by itself before a case runs, and what a family of processes uses, read from outside."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Final

MEBIBYTE: Final = 1 << 20
PROCESSES: Final = 256
"""Processes and threads of one child; enough for a compiler and its pipes."""
_OPEN_FILES: Final = 512
_FILE_BYTES: Final = 1 << 30
_STACKS: Final = 64 * MEBIBYTE
"""Of a few threads: they count as writable address space."""
SPARE_DESCRIPTOR: Final = _OPEN_FILES + 7
"""Above the limit on open files: no case gets this number, and none that closes all it may have hits it."""
_PROC: Final = Path("/proc")


def apply(memory_mb: int, *, own_user: bool) -> None:
    """Limit this process and its descendants. Raises OSError or ValueError where the machine does not allow it.

    The memory limit proper is the supervisor's, by what is really resident. This one, on writable address space, is the
    backstop behind it for what grows faster than anyone can look, and twice as high because reserving is not using.
    """
    data = own_memory("VmData") + 2 * memory_mb * MEBIBYTE + _STACKS
    _limit(resource.RLIMIT_DATA, data)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, _FILE_BYTES)
    _limit(resource.RLIMIT_NOFILE, _OPEN_FILES)
    _limit(resource.RLIMIT_NPROC, PROCESSES if own_user else threads_on_machine() + PROCESSES)


def _limit(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    capped = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (capped, capped))


def offer_to_oom_killer() -> None:
    """If the machine runs out of memory, this process goes first."""
    Path("/proc/self/oom_score_adj").write_text("900")


def threads_on_machine() -> int:
    """All threads of all users: the kernel counts a user's, and this bounds them in one read (proc(5), loadavg)."""
    return int((_PROC / "loadavg").read_text().split()[3].partition("/")[2])


def own_memory(*names: str) -> int:
    return _status_bytes("self", names)


def resident(pid: int) -> int:
    """Bytes of memory that are `pid`'s own to use: anonymous and shared, not mapped files. 0 if it is gone."""
    try:
        return _status_bytes(str(pid), ("RssAnon", "RssShmem"))
    except (FileNotFoundError, ProcessLookupError):
        return 0


def proportional(pid: int) -> int:
    """The same with each shared page divided among its users: exact for many processes, and slow. 0 if it is gone."""
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("Pss_Anon:", "Pss_Shmem:")))


def _status_bytes(pid: str, names: tuple[str, ...]) -> int:
    lines = (_PROC / pid / "status").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.partition(":")[0] in names)


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
