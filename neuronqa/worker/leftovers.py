"""Shared memory outlives the processes that made it. Where a child has no namespace of its own, it is swept up here."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

from neuronqa.worker import linux

_POSIX: Final = Path("/dev/shm")
_SYSTEM_V: Final = Path("/proc/sysvipc/shm")


class SharedMemory:
    """What there is before a child, so that what is there after it and in nobody's hands can be told and removed.

    `uid` is a user that only the child has, or None if it shares ours. In the second case a block that another process
    of ours made meanwhile is kept if that process lives and has it open.
    """

    def __init__(self, uid: int | None) -> None:
        self._owner = os.geteuid() if uid is None else uid
        self._exclusive = uid is not None
        self._blocks = set(_POSIX.iterdir())
        self._segments = set(_segments())

    @classmethod
    @contextlib.contextmanager
    def kept_clean(cls, uid: int | None) -> Iterator[Self]:
        before = cls(uid)
        try:
            yield before
        finally:
            before.sweep()

    def sweep(self) -> None:
        """Call it when the child and its descendants are dead."""
        for path in set(_POSIX.iterdir()) - self._blocks:
            with contextlib.suppress(FileNotFoundError):
                if path.lstat().st_uid == self._owner and path.is_file() and (self._exclusive or not _in_use(path)):
                    path.unlink()
        for segment, (owner, attached) in _segments().items():
            if segment not in self._segments and owner == self._owner and not attached:
                with contextlib.suppress(OSError):
                    linux.remove_shared_memory(segment)


def _segments() -> dict[int, tuple[int, int]]:
    """System V segments: owner and number of users by id (proc(5))."""
    header, *rows = (line.split() for line in _SYSTEM_V.read_text().splitlines())
    named = (dict(zip(header, map(int, row), strict=True)) for row in rows)
    return {row["shmid"]: (row["uid"], row["nattch"]) for row in named}


def _in_use(path: Path) -> bool:
    """Does any process that we may look at have it open or mapped?"""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(path) in (process / "maps").read_text():
                return True
            if any(link.readlink() == path for link in (process / "fd").iterdir()):
                return True
    return False
