"""The reference agent: claim, read the bundle, let a solver write a kernel, hand it in; or say why not.

It uses the queue as any agent does. A solver is a function; one that starts another program is here, the
one that needs no model behind it is :mod:`neuronqa.fixqueue.solver`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Container
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from neuronqa.db import fixes
from neuronqa.db.fix_store import Grant
from neuronqa.domain.fix import ItemState
from neuronqa.errors import BadInput
from neuronqa.fixqueue import bundle as bundles
from neuronqa.fixqueue.bundle import Bundle
from neuronqa.fixqueue.service import FixQueue
from neuronqa.fixqueue.solver import solve
from neuronqa.fixqueue.verdict import Form

OVERLAY_FILE: Final = "overlay.py"
ABSTAIN_FILE: Final = "abstain.txt"
BEAT_S: Final = 60.0
MANY: Final = 10_000
KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER", "TERM")
"""Of our environment, for a program that is started: no lease, no database, no token of ours."""


class Did(StrEnum):
    """What an agent did with an item."""

    SUBMITTED = "submitted"
    ABSTAINED = "abstained"
    RELEASED = "released"


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """What a solver came to: the text of an overlay, or why there is none."""

    overlay: str | None
    note: str = ""
    gives_up: bool = True
    """Without an overlay: is that about the item (abstain), or about the solver (release)?"""


@dataclass(frozen=True, kw_only=True)
class Worked:
    """One item, worked off."""

    item: int
    did: Did
    submission: int | None = None
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"item": self.item, "did": self.did.value, "submission": self.submission, "note": self.note}


Solver = Callable[[Bundle, Path, Callable[[], object]], Proposal]
"""The bundle, the item's folder to read, and what keeps the lease."""


def work(queue: FixQueue, solver: Solver, name: str, items: int) -> list[Worked]:
    """Work off so many items, or all that are free if they are fewer. An item is met once."""
    done: list[Worked] = []
    while len(done) < items and (grant := _claimed(queue, name, {one.item for one in done})) is not None:
        done.append(_worked(queue, solver, grant.token))
    return done


def _claimed(queue: FixQueue, name: str, met: Container[int]) -> Grant | None:
    """The next free item that was not met before."""
    with queue.reading() as db:
        free = fixes.items(db, [ItemState.QUEUED], limit=MANY)
    for one in sorted(free, key=lambda one: (one.place, one.id)):
        if one.id not in met and (grant := queue.claim(name, one.id)) is not None:
            return grant
    return None


def built_in(one: Bundle, folder: Path, beat: Callable[[], object]) -> Proposal:
    """Fix what can be proved: an operator that is made of parts the device has."""
    del folder, beat
    text = solve(one.to_json())
    return Proposal(overlay=text, note="" if text else "no definition of it has only parts that the device has")


@dataclass(frozen=True, kw_only=True)
class CommandSolver:
    """Starts a program in a folder with `bundle.md` and the reproduction; it leaves `overlay.py`, or `abstain.txt`."""

    command: tuple[str, ...]
    seconds: float

    @classmethod
    def of(cls, command: str, seconds: float) -> CommandSolver:
        """Raises BadInput for no program. No shell reads the command."""
        words = tuple(shlex.split(command))
        if not words or shutil.which(words[0]) is None:
            raise BadInput("there is no such program", where=command[:80])
        return cls(command=words, seconds=seconds)

    def __call__(self, one: Bundle, folder: Path, beat: Callable[[], object]) -> Proposal:
        with tempfile.TemporaryDirectory(prefix="neuronqa-agent-") as place:
            inside = Path(place) / "item"
            shutil.copytree(folder, inside)
            (inside / "bundle.md").write_text(bundles.text(one), encoding="utf-8")
            code = self._run(inside, beat)
            return _left(inside, code)

    def _run(self, folder: Path, beat: Callable[[], object]) -> int | None:
        """Its exit code; None where it did not end in time."""
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        until = time.monotonic() + self.seconds
        with subprocess.Popen(
            self.command, cwd=folder, env=kept, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        ) as child:  # fmt: skip
            while (left := until - time.monotonic()) > 0:
                try:
                    return child.wait(min(BEAT_S, left))
                except subprocess.TimeoutExpired:
                    beat()
            os.killpg(child.pid, 9)
        return None


def _worked(queue: FixQueue, solver: Solver, token: str) -> Worked:
    item = queue.held(token).id
    try:
        proposal = solver(bundles.bundle(queue, token), queue.folder(item), lambda: queue.heartbeat(token))
    except BaseException:
        queue.release(token, "the solver failed")
        raise
    if proposal.overlay is not None:
        number = queue.submit_text(token, Form.OVERLAY, proposal.overlay)
        return Worked(item=item, did=Did.SUBMITTED, submission=number, note=proposal.note)
    if proposal.gives_up:
        queue.abstain(token, proposal.note or "no kernel was found")
        return Worked(item=item, did=Did.ABSTAINED, note=proposal.note)
    queue.release(token, proposal.note)
    return Worked(item=item, did=Did.RELEASED, note=proposal.note)


def _left(folder: Path, code: int | None) -> Proposal:
    """What the program left. Its files are read as text, and links lead nowhere."""
    overlay, abstain = (_text(folder / name) for name in (OVERLAY_FILE, ABSTAIN_FILE))
    if overlay:
        return Proposal(overlay=overlay)
    if abstain:
        return Proposal(overlay=None, note=abstain[:500])
    why = "it ran out of time" if code is None else f"it left no {OVERLAY_FILE} (exit code {code})"
    return Proposal(overlay=None, note=why, gives_up=False)


def _text(path: Path) -> str:
    if path.is_symlink() or not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(1 << 20).decode("utf-8", "replace")
