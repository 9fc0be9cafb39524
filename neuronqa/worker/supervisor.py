"""Runs one child, or the ranks of one case, at a time below a zygote and replaces the zygote when it dies."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from neuronqa.domain.observation import Exit, Progress
from neuronqa.domain.policy import Limits
from neuronqa.domain.workload import OP_TESTS, AttentionSpec, HfSpec, OpSpec, Workload
from neuronqa.worker import confine, folders, frames, zygote
from neuronqa.worker.confine import Confinement
from neuronqa.worker.handle import START_S, ZygoteHandle, ZygoteLost
from neuronqa.worker.leftovers import SharedMemory
from neuronqa.worker.ranks import MOST as MOST_RANKS
from neuronqa.worker.watch import Watch

_MEETING: Final = "meeting"
"""The folder that the ranks of a case share."""

log = logging.getLogger(__name__)


class Supervisor:
    """Owns a zygote. To be used on the main thread, one call at a time.

    `work` is a private folder: children see nothing of the machine's writable places but what lies in it.
    """

    def __init__(self, work: Path, settings: zygote.Settings) -> None:
        self._work = work
        self._uid = confine.child_uid()
        self._settings = replace(settings, work=str(work), uid=self._uid)
        self._zygote: ZygoteHandle | None = None
        self._runs = 0
        self._deadly: set[str] = set()
        """Modules whose import ended a zygote; children import them themselves."""

    def start(self) -> ZygoteHandle:
        """Return the living zygote; start one if there is none. Raises EnvironmentFault if it does not start."""
        if self._zygote is not None and not self._zygote.alive:
            self.close()
        if self._zygote is None:
            self._zygote = ZygoteHandle(self._settings)
        return self._zygote

    def share(self, modules: Sequence[str]) -> None:
        """Import installed modelling modules before the next fork, so that no child needs to. Others are left out."""
        handle = self.start()
        fresh = [name for name in modules if name.startswith(zygote.TRUSTED_PREFIXES)]
        fresh = [name for name in fresh if name not in handle.shared and name not in self._deadly]
        if not fresh:
            return
        try:
            handle.tell({"kind": "import", "modules": fresh})
            handle.answer(START_S)
            handle.shared.update(fresh)
        except ZygoteLost as lost:
            self._deadly.update(fresh)
            self._lost(lost, f"importing {', '.join(fresh)}")

    def share_for(self, workload: Workload) -> None:
        """Import what is slow to import for the children of a workload."""
        match workload.spec:
            case HfSpec() as spec:
                self.share([spec.module])
            case OpSpec():
                self.share([OP_TESTS])
            case AttentionSpec():
                self.share(["torch.nn.attention.flex_attention"])
            case _:
                pass

    def run(self, role: str, request: Mapping[str, Any], limit: Limits, ranks: int = 1) -> Exit:
        """Play `role` in a child of its own. `request["out"]`, a folder below the work folder, is made for it.

        On several `ranks`, each a child with the limits of one, rank r is also told `{"rank": r, "ranks", "store"}`,
        where `store` names a file that all of them may make and write, and has `OUT/rank.r` for its own folder. They
        reach each other over loopback and nobody else. The first that goes wrong ends all.

        Children whose zygote dies are void and run once more below a new one: they may be innocent.
        Raises EnvironmentFault when no zygote can be started.
        """
        if ranks > 1 and (why := self._refusal(ranks)):
            return Exit(done=False, progress=Progress.STARTED, fault=why)
        for _ in range(2):
            try:
                return self._run(role, request, limit, ranks)
            except ZygoteLost as lost:
                self._lost(lost, f"a {role} child")
                folders.remove(Path(request["out"]))
        note = "neuronqa: the zygote died under this case, and a new one under its second run"
        return Exit(done=False, progress=Progress.STARTED, signal="SIGKILL", stderr_tail=note)

    def _refusal(self, ranks: int) -> str:
        if ranks > MOST_RANKS:
            return f"{ranks} ranks are more than the {MOST_RANKS} that run on one node"
        if self.start().confinement is not Confinement.SEALED:
            return "ranks need a network of their own to reach each other, and this machine gives none"
        return ""

    def _run(self, role: str, request: Mapping[str, Any], limit: Limits, ranks: int) -> Exit:
        handle = self.start()
        self._runs += 1
        scratch = folders.make(self._work / f"scratch-{self._runs}", self._uid)
        folders.make(Path(request["out"]), self._uid)
        tasks = [self._task(role, each, scratch, limit) for each in self._requests(request, scratch, ranks)]
        try:
            with self._clean_shared_memory(handle), Watch(handle, tasks) as watch:
                return watch.exit()
        finally:
            folders.remove(scratch)
            for task, _ in tasks:
                folders.vet(Path(task.request["out"]))

    def _requests(self, request: Mapping[str, Any], scratch: Path, ranks: int) -> list[Mapping[str, Any]]:
        """What each rank is asked; its folder exists."""
        if ranks == 1:
            return [request]
        store = folders.make(scratch / _MEETING, self._uid) / "store"
        asked: list[Mapping[str, Any]] = []
        for rank in range(ranks):
            out = folders.make(Path(request["out"]) / f"rank.{rank}", self._uid)
            asked.append({**request, "out": str(out), "rank": rank, "ranks": ranks, "store": str(store)})
        return asked

    def _task(self, role: str, request: Mapping[str, Any], scratch: Path, limit: Limits) -> tuple[frames.Task, Path]:
        own, shared = scratch, []
        if "rank" in request:
            own = folders.make(scratch / f"rank.{request['rank']}", self._uid)
            shared = [str(scratch / _MEETING)]
        mark_file = own / ".last-op"
        mark_file.touch(0o600)
        folders.give(mark_file, self._uid)
        task = frames.Task(
            role=role,
            request={**request, "last_op_file": str(mark_file)},
            scratch=str(own),
            writable=(str(own), str(request["out"]), *shared),
            deadline_s=limit.deadline_s,
            memory_mb=limit.memory_mb,
        )
        return task, mark_file

    def _clean_shared_memory(self, handle: ZygoteHandle) -> AbstractContextManager[object]:
        if handle.confinement is Confinement.SEALED:
            return nullcontext()
        return SharedMemory.kept_clean(self._uid)

    def _lost(self, why: ZygoteLost, during: str) -> None:
        log.warning("A zygote was lost during %s: %s.", during, why, extra={"action": "zygote_lost"})
        self.close()

    def close(self) -> None:
        """End the zygote and all that runs below it."""
        if self._zygote is not None:
            self._zygote.kill()
            self._zygote = None
