"""References kept for the next job on the same workload: what they hold does not depend on the build under test."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from neuronqa.domain.case import Variant
from neuronqa.domain.identity import content_hash
from neuronqa.domain.observation import INPUT_FILE, TENSOR_FILE, WEIGHT_FILE
from neuronqa.domain.workload import Workload
from neuronqa.errors import InvariantBroken
from neuronqa.worker import folders
from neuronqa.worker.runner import Reference

ROOM: Final = 256 << 20
"""Bytes of references that are kept after a job."""
RECHECK: Final = 16
"""Every so many uses a kept reference is made again and must come out the same, bit for bit."""

Maker = Callable[[Path], Reference]
"""Makes a reference in a folder that does not exist yet."""


class Shelf:
    """Keeps references in a folder of their own, the least recently used ones go first."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700)
        self._folder = folder
        self._kept: OrderedDict[str, Reference] = OrderedDict()
        self._uses = itertools.count(1)
        self._numbers = itertools.count(1)

    def reference(self, workload: Workload, variant: Variant, steps: int, make: Maker) -> Reference:
        """Return the kept one, which cost nothing this time, or make it. InvariantBroken if it comes out otherwise."""
        key = content_hash({"workload": workload.hash, "variant": str(variant), "steps": steps})
        if key not in self._kept:
            made = make(self._place())
            if made.fit:
                self._kept[key] = made
            return made
        self._kept.move_to_end(key)
        found = self._kept[key]
        if next(self._uses) % RECHECK == 0:
            self._recheck(found, make)
        free = replace(found.result.exit, cpu_s=0.0, wall_s=0.0)
        return replace(found, result=replace(found.result, exit=free))

    def _recheck(self, kept: Reference, make: Maker) -> None:
        again = make(self._place())
        same = _content(again.folder) == _content(kept.folder)
        folders.remove(again.folder)
        if not same:
            raise InvariantBroken(
                "a reference came out differently when it was made again",
                where=str(kept.result.variant),
                hint="nothing that was compared with it can be believed",
            )

    def _place(self) -> Path:
        return self._folder / str(next(self._numbers))

    def clear(self) -> None:
        """Forget everything: what workloads are made of has changed behind their names."""
        self._kept.clear()
        self.trim()

    def trim(self) -> None:
        """Remove what is not kept, and of what is kept the oldest beyond the room there is. Between jobs."""
        sizes = {key: folders.size(one.folder) for key, one in self._kept.items()}
        while sum(sizes.values()) > ROOM:
            key, _ = self._kept.popitem(last=False)
            del sizes[key]
        kept = {one.folder for one in self._kept.values()}
        for folder in self._folder.iterdir():
            if folder not in kept:
                folders.remove(folder)


def _content(folder: Path) -> str:
    """What a device is compared with, without how long it took to make."""
    return folders.digest(folder, (TENSOR_FILE, WEIGHT_FILE, INPUT_FILE))
