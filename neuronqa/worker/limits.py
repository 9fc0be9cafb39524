"""What a child may use, set by itself before a case runs."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Final

from neuronqa.worker import processes

MEBIBYTE: Final = 1 << 20
PROCESSES: Final = 256
"""Processes and threads of one child; enough for a compiler and its pipes."""
_OPEN_FILES: Final = 512
_FILE_BYTES: Final = 1 << 30
_STACKS: Final = 64 * MEBIBYTE
"""Of a few threads: they count as writable address space."""
SPARE_DESCRIPTOR: Final = _OPEN_FILES + 7
"""Above the limit on open files: no case gets this number, and none that closes all it may have hits it."""


def apply(memory_mb: int, *, own_user: bool) -> None:
    """Limit this process and its descendants. Raises OSError or ValueError where the machine does not allow it.

    The memory limit proper is the supervisor's, by what is really resident. This one, on writable address space, is the
    backstop behind it for what grows faster than anyone can look, and twice as high because reserving is not using.
    """
    data = processes.memory("self", "VmData") + 2 * memory_mb * MEBIBYTE + _STACKS
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
    return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
