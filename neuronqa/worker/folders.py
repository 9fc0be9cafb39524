"""Where children work: private folders in memory where there is room, swept when their owner is gone."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, Self

from neuronqa.errors import EnvironmentFault

ROOM: Final = 2 << 30
"""Bytes that must be free in shared memory before work is put there."""
_SHARED_MEMORY: Final = Path("/dev/shm")
_ENTRY: Final = 1024
"""About what a file costs in memory besides its content."""


class WorkFolder:
    """A private folder that lives as long as its owner: a lock that the kernel gives back shows that it does."""

    def __init__(self, place: Path | None = None) -> None:
        """Make one below `place`, after sweeping what dead owners left there. Raises EnvironmentFault."""
        try:
            home = _home(place or _roomiest())
            with _guard(home / "guard"):
                _sweep(home)
                self._lock = home / f"{secrets.token_hex(8)}.lock"
                self._handle = _lock(self._lock)
                self.path = self._lock.with_suffix("")
                self.path.mkdir(mode=0o700)
        except OSError as error:
            raise EnvironmentFault(
                f"no folder to work in: {error.strerror}",
                where=str(error.filename or place or ""),
                hint="free some space, or set TMPDIR to a folder you can write",
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        remove(self.path)
        self._lock.unlink(missing_ok=True)
        os.close(self._handle)


def _roomiest() -> Path:
    """Shared memory if it can be written and has room (containers often have 64 MB), else the temporary folder."""
    if os.access(_SHARED_MEMORY, os.W_OK | os.X_OK) and shutil.disk_usage(_SHARED_MEMORY).free >= ROOM:
        return _SHARED_MEMORY
    return Path(tempfile.gettempdir())


def _home(place: Path) -> Path:
    """This user's folder below `place`. Its name can be guessed, so what is there is looked at first."""
    home = place.resolve() / f"neuronqa-{os.geteuid()}"
    home.mkdir(mode=0o700, exist_ok=True)
    facts = home.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o077:
        raise PermissionError(0, "not a private folder of this user", str(home))
    return home


@contextlib.contextmanager
def _guard(path: Path) -> Iterator[None]:
    """One owner at a time makes or sweeps folders: between the two a new folder has no lock yet."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _lock(path: Path) -> int:
    """Raises BlockingIOError if somebody holds it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle


def _sweep(home: Path) -> None:
    """Remove the folders whose owner is dead. A lock tells, not a process id: ids are used again."""
    for lock in home.glob("*.lock"):
        try:
            handle = _lock(lock)
        except BlockingIOError:
            continue
        remove(lock.with_suffix(""))
        lock.unlink(missing_ok=True)
        os.close(handle)


def remove(folder: Path) -> None:
    """Remove whatever a child made of `folder`: rights taken away and trees too deep for Python included."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if os.path.lexists(folder):
        subprocess.run(["chmod", "-R", "u+rwx", "--", folder], check=False, capture_output=True)
        subprocess.run(["rm", "-rf", "--", folder], check=False, capture_output=True)


def make(path: Path, owner: int | None) -> Path:
    """Make a private folder for a child that runs as `owner` (None: as we do)."""
    path.mkdir(mode=0o700)
    give(path, owner)
    return path


def give(path: Path, owner: int | None) -> None:
    if owner is not None:
        os.chown(path, owner, owner)


def vet(folder: Path) -> None:
    """Leave only plain files: a reader must not follow a link, wait on a pipe, or meet a file by its second name."""
    folder.mkdir(mode=0o700, exist_ok=True)
    for entry, facts in [(entry, entry.lstat()) for entry in folder.iterdir()]:
        if stat.S_ISDIR(facts.st_mode):
            remove(entry)
        elif not stat.S_ISREG(facts.st_mode) or facts.st_nlink > 1:
            entry.unlink()


def freeze(folder: Path) -> str:
    """Take children's files from them, for good, and return their :func:`digest`."""
    for path in (folder, *sorted(folder.rglob("*"))):
        os.chown(path, os.geteuid(), os.getegid())
        path.chmod(0o500 if path.is_dir() else 0o400)
    return digest(folder)


def digest(folder: Path, names: Collection[str] = ()) -> str:
    """SHA-256 over the names and contents of the files below `folder`, or of those that are called one of `names`."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and (not names or path.name in names):
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            total.update(f"{path.relative_to(folder)}\0{content}\n".encode())
    return total.hexdigest()


def size(folder: Path) -> int:
    """Bytes held below `folder`, entries themselves included; what vanishes meanwhile is not counted."""
    total = 0
    rest = [str(folder)]
    while rest:
        with contextlib.suppress(OSError), os.scandir(rest.pop()) as entries:
            for entry in entries:
                total += _ENTRY + entry.stat(follow_symlinks=False).st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    rest.append(entry.path)
    return total
