"""Where things are kept that can be made again: built devices, generated catalogs, compiled graphs."""

from __future__ import annotations

import os
from pathlib import Path

from neuronqa.errors import EnvironmentFault


def cache_dir() -> Path:
    """`$NEURONQA_CACHE`, else `$XDG_CACHE_HOME/neuronqa`, else `~/.cache/neuronqa`; made if absent.

    Raises EnvironmentFault when it cannot be written.
    """
    named = os.environ.get("NEURONQA_CACHE")
    shared = os.environ.get("XDG_CACHE_HOME")
    if named:
        path = Path(named)
    elif shared:
        path = Path(shared) / "neuronqa"
    else:
        path = _home() / ".cache" / "neuronqa"
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, str(error)) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise _unwritable(path, "it is read-only")
    return path.resolve()


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:  # no HOME, and a user the machine does not know: common in containers
        raise _unwritable(Path("~"), str(error)) from error


def _unwritable(path: Path, why: str) -> EnvironmentFault:
    return EnvironmentFault(
        f"the cache folder cannot be used: {why}", where=str(path), hint="set NEURONQA_CACHE to a folder you can write"
    )
