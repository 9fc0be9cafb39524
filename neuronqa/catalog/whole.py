"""Folders that appear whole or not at all, whoever makes them at the same time and whoever is killed over it."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from neuronqa.catalog import manifest
from neuronqa.errors import BadInput

PREFIX: Final = ".making-"
STALE_S: Final = 86_400.0
"""A folder in the making that has not changed for so long was left by a process that died."""


def make(home: Path, fill: Callable[[Path], None]) -> Path:
    """Return `home`, the folder of a snapshot, letting `fill` write it first if it is not there yet.

    Each of several processes fills a folder of its own; one rename wins, and the others use what it made. What another
    version left there that this one cannot read is made again.
    """
    if (home / manifest.FILE).is_file():
        try:
            manifest.read(home)
        except BadInput:
            shutil.rmtree(home, ignore_errors=True)
        else:
            return home
    home.parent.mkdir(parents=True, exist_ok=True)
    _sweep(home.parent)
    made = Path(tempfile.mkdtemp(prefix=PREFIX, dir=home.parent))
    try:
        fill(made)
        try:
            made.rename(home)
        except OSError:
            if not (home / manifest.FILE).is_file():
                raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return home


def _sweep(parent: Path) -> None:
    for place in parent.glob(f"{PREFIX}*"):
        try:
            stale = time.time() - place.stat().st_mtime > STALE_S
        except OSError:  # its maker has just finished
            continue
        if stale:
            shutil.rmtree(place, ignore_errors=True)
