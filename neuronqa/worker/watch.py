"""Watches a child, or the ranks of one case, from the fork to the end, and keeps them within their limits."""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from neuronqa.domain.observation import Exit
from neuronqa.worker import folders, frames, limits, processes
from neuronqa.worker.handle import ZygoteHandle, ZygoteLost
from neuronqa.worker.ranks import joined
from neuronqa.worker.watched import ANSWER_S, Killed, Watched

GRACE_S: Final = 0.3
"""Between the deadline, at which a child dumps its stack, and its death."""
SETUP_S: Final = 20.0
"""From the fork to the first line of the role."""
_LOOK_S: Final = 0.1


class Watch:
    """One case. Entering forks its ranks, mostly one; :meth:`exit` waits for their end. Both may raise ZygoteLost.

    The first rank that goes wrong ends the others: they would wait for it for ever.
    """

    def __init__(self, zygote: ZygoteHandle, tasks: Sequence[tuple[frames.Task, Path]]) -> None:
        """`tasks`: by rank, with the file each keeps the running operator's name in."""
        self._zygote = zygote
        self._tasks = tasks
        self._memory = sum(task.memory_mb for task, _ in tasks) * limits.MEBIBYTE
        self._children: list[Watched] = []
        self._first: int | None = None
        self._killed_at: float | None = None
        self._most = 0
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as guard:
            guard.callback(self._open.close)
            for rank, (task, mark_file) in enumerate(self._tasks, 1):
                child = Watched(self._zygote, task, mark_file, more=rank < len(self._tasks))
                self._open.callback(child.close)
                self._children.append(child)
            guard.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.close()

    def exit(self) -> Exit:
        """Return how the case ended, with nothing of it left running."""
        self._wait()
        for child in self._children:
            child.drain()
        left = joined([child.describe() for child in self._children], self._first)
        return replace(left, peak_rss=max(left.peak_rss, self._most + self._children[0].base["anonymous"]))

    @property
    def _running(self) -> list[Watched]:
        return [child for child in self._children if child.ended is None]

    def _wait(self) -> None:
        poller = select.poll()
        poller.register(self._zygote.control, select.POLLIN)
        outputs = {child.output: child for child in self._children}
        for output in outputs:
            poller.register(output, select.POLLIN)
        look = self._children[0].began + _LOOK_S
        while self._running:
            pause = min(look, self._due()) - time.monotonic()
            ready = {descriptor for descriptor, _ in poller.poll(max(0.0, pause) * 1000)}
            for output in ready & outputs.keys():
                if not outputs[output].read():
                    poller.unregister(output)
            if self._zygote.control.fileno() in ready:
                self._note(self._zygote.answer(ANSWER_S)[0])
                continue
            if (now := time.monotonic()) >= look:
                self._look()
                look = now + max(_LOOK_S, 10 * (time.monotonic() - now))
            if now >= self._due():
                self._expire()

    def _note(self, ended: dict[str, Any]) -> None:
        child = self._children[ended["place"]]
        child.ended = ended
        if not child.well and self._killed_at is None:
            self._first = ended["place"]
            self._kill(self._running, Killed.RANK)

    def _due(self) -> float:
        """When patience ends: with the zygote after a kill, with the case once it began, with its setup before."""
        if self._killed_at is not None:
            return self._killed_at + ANSWER_S
        return min(map(self._patience, self._running))

    def _patience(self, child: Watched) -> float:
        started = child.started
        if started:
            return min(started, time.monotonic()) + child.task.deadline_s + GRACE_S
        return child.began + SETUP_S

    def _expire(self) -> None:
        if self._killed_at is not None:
            raise ZygoteLost(f"it did not report a killed child within {ANSWER_S:.0f} s")
        late = [child for child in self._running if time.monotonic() >= self._patience(child)]
        if not late:
            return
        # What a rank waits for is late too, though its clock may have started a little later.
        why = Killed.DEADLINE if late[0].started else Killed.SETUP
        self._first = self._children.index(late[0])
        self._kill(self._running, why)

    def _look(self) -> None:
        if processes.is_stopped(self._zygote.pid):
            raise ZygoteLost("it was stopped")
        family, base = self._zygote.family, self._children[0].base["anonymous"]
        members = family.members()
        if len(members) > limits.PROCESSES:
            self._end(Killed.PROCESSES)
        writable = {folder for child in self._children for folder in child.task.writable}
        kept = sum(folders.size(Path(folder)) for folder in writable)
        used = family.resident(members) - base * len(self._children) + kept
        if used > self._memory and len(members) > 1:
            # Processes share pages, so the sum is too high; this one is exact, and some ms slow.
            used = family.proportional(members) - base + kept
        self._most = max(self._most, used)
        if used > self._memory:
            self._end(Killed.MEMORY)

    def _end(self, why: Killed) -> None:
        """The family is over a limit: kill its biggest rank for it, and the others with it."""
        if self._killed_at is not None or not self._running:
            return
        biggest = max(self._running, key=lambda child: self._zygote.family.resident([child.pid]))
        self._first = self._children.index(biggest)
        self._kill([biggest], why)
        self._kill([child for child in self._running if child is not biggest], Killed.RANK)

    def _kill(self, children: Sequence[Watched], why: Killed) -> None:
        if children:
            self._killed_at = time.monotonic()
        for child in children:
            child.kill(why)
