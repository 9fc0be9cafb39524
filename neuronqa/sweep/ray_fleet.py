"""The fleet on Ray: one actor per slot, a bounded window of calls, replacements for actors that die."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import ray
from ray.exceptions import GetTimeoutError, RayError

from neuronqa.domain.job import Job, JobResult
from neuronqa.errors import EnvironmentFault, NodeUnsound
from neuronqa.sweep.fleet import Completion
from neuronqa.sweep.ground import Ground, Node
from neuronqa.worker.actor import CaseActor

WINDOW: Final = 2
"""Batches in flight per actor: one running, one waiting, so that an actor never idles between them."""
START_S: Final = 180.0
"""A zygote imports torch and transformers before its actor is ready."""
SLACK_S: Final = 120.0
MOURNING: Final = 5
"""Actors that may die before they were ever ready, in a row, before the fleet is given up."""
REST_S: Final = 1.0
"""A node on which a worker did not start is left alone so long, and longer each time."""
LOOK_S: Final = 5.0
"""How often it is looked for nodes that joined."""

log = logging.getLogger(__name__)

Fit = Callable[[Mapping[str, Any]], str]
"""What a ready worker tells of itself -> why it may not work; empty if it may."""


def welcome(told: Mapping[str, Any]) -> str:
    """Everybody may work: on one machine there is nobody else to differ from."""
    del told
    return ""


@dataclass(eq=False)
class _Slot:
    """One actor and what it has in hand."""

    handle: Any
    node: Node
    ready: bool = False
    calls: dict[Any, int] = field(default_factory=dict)
    deadlines: dict[Any, float] = field(default_factory=dict)


class RayFleet:
    """A :class:`~neuronqa.sweep.fleet.Fleet` of at most `workers` Ray actors on the nodes of a `ground`.

    Nodes may join and leave: slots are filled up as long as there is room. Whoever is not `fit` to work, by what a
    worker tells of itself, is let go again, and so is its node.
    """

    def __init__(self, workers: int, ground: Ground, settings: dict[str, Any], fit: Fit = welcome) -> None:
        self._workers = workers
        self._ground = ground
        self._settings = settings
        self._fit = fit
        self._ranks = 1
        self._births: dict[Any, _Slot] = {}
        self._slots: list[_Slot] = []
        self._stillborn = 0
        self._resting: dict[str, float] = {}
        """Node -> when workers may be put there again."""
        self._refused: dict[str, str] = {}
        """Node -> why it takes no part."""
        self._looked = 0.0
        self._ended: list[Completion] = []
        self._fill()

    @property
    def size(self) -> int:
        return sum(slot.ready for slot in self._slots)

    @property
    def refused(self) -> Mapping[str, str]:
        return self._refused

    def check_room(self, ranks: int) -> None:
        if ranks > (most := self._ground.most_ranks()):
            raise EnvironmentFault(
                f"no node has room for {ranks} ranks; the largest takes {most}",
                hint="use a cluster with a larger node, or a policy without such cases",
            )

    def lay_out(self, ranks: int) -> None:
        if ranks == self._ranks:
            return
        self.check_room(ranks)
        self._dismiss(self._slots)
        self._ranks = ranks
        self._fill()

    def await_first(self) -> None:
        until = time.monotonic() + START_S
        while not self.size:
            self._ended += self.wait(timeout=0.5)
            if not (self._slots or self._stillborn) and time.monotonic() > until:
                raise EnvironmentFault("there is no room for a worker", hint="add nodes, or wait until others are done")

    def capacity(self) -> int:
        return sum(WINDOW - len(slot.calls) for slot in self._slots if slot.ready)

    def submit(self, token: int, jobs: Sequence[Job]) -> None:
        slot = min((slot for slot in self._slots if slot.ready), key=lambda slot: len(slot.calls))
        before = max(slot.deadlines.values(), default=time.monotonic())
        call = slot.handle.run.remote(list(jobs))
        slot.calls[call] = token
        slot.deadlines[call] = before + patience(jobs)

    def wait(self, timeout: float) -> Sequence[Completion]:
        pending = [*self._births, *(call for slot in self._slots for call in slot.calls)]
        if not pending:
            time.sleep(timeout)
        elif not self._ended:
            done, _ = ray.wait(pending, num_returns=1, timeout=timeout)
            more, _ = ray.wait(pending, num_returns=len(pending), timeout=0) if done else ([], [])
            for call in more or done:
                self._finish(call)
        self._kill_overdue()
        if time.monotonic() - self._looked >= LOOK_S:
            self._fill()
        out, self._ended = self._ended, []
        return out

    def drain(self, node: str, why: str) -> None:
        """Let go of every worker on the node of this name, and put none there again."""
        log.warning("Node %s takes no more part: %s.", node, why, extra={"action": "node_drained"})
        self._refused[node] = why
        for slot in [slot for slot in self._slots if slot.node.name == node]:
            self._bury(slot, why)

    def close(self) -> None:
        self._dismiss(self._slots)

    def _dismiss(self, slots: Sequence[_Slot]) -> None:
        for slot in list(slots):
            with suppress(RayError, GetTimeoutError):
                ray.get(slot.handle.close.remote(), timeout=5)
            ray.kill(slot.handle)
            self._slots.remove(slot)
            self._births = {birth: other for birth, other in self._births.items() if other is not slot}

    def _fill(self) -> None:
        """Put workers wherever there is room for them."""
        self._looked = now = time.monotonic()
        nodes = [node for node in self._ground.nodes(self._ranks) if node.name not in self._refused]
        vacant = self._ground.vacant(self._ranks) - len(self._births)
        held = Counter(slot.node.id for slot in self._slots)
        for place in range(max((node.slots for node in nodes), default=0)):  # Breadth first: every node has a share.
            for node in nodes:
                free = held[node.id] <= place < node.slots and now >= self._resting.get(node.id, 0.0)
                if free and vacant >= 1 and len(self._slots) < self._workers:
                    vacant -= 1
                    self._spawn(node)

    def _spawn(self, node: Node) -> None:
        options = self._ground.options(self._ranks, node)
        made = ray.remote(max_restarts=0, max_task_retries=0, **options)(CaseActor)
        slot = _Slot(made.remote(**self._settings, node=node.name), node)
        birth = slot.handle.ready.remote()
        slot.deadlines[birth] = time.monotonic() + START_S
        self._slots.append(slot)
        self._births[birth] = slot

    def _finish(self, call: Any) -> None:
        if call in self._births:
            self._attend_birth(call)
            return
        slot = next((slot for slot in self._slots if call in slot.calls), None)
        if slot is None:  # Its actor died with more than one call, and the first told of them all.
            return
        try:
            results: list[JobResult] = ray.get(call)
        except RayError as error:
            self._lose(slot, error)
            return
        del slot.deadlines[call]
        self._ended.append(Completion(token=slot.calls.pop(call), results=results))

    def _lose(self, slot: _Slot, error: RayError) -> None:
        cause = getattr(error, "cause", None)
        if isinstance(cause, NodeUnsound):
            self.drain(slot.node.name, cause.what)
            self._say_who_is_left()
        else:
            self._bury(slot, _reason(error))

    def _attend_birth(self, birth: Any) -> None:
        slot = self._births.pop(birth)
        slot.deadlines.pop(birth, None)
        try:
            told = ray.get(birth)
        except RayError as error:
            self._mourn(slot, _reason(error))
            self._bury(slot, "")
            return
        if why := self._fit(told):
            self.drain(slot.node.name, why)
            self._say_who_is_left()
            return
        self._stillborn = 0
        self._resting.pop(slot.node.id, None)
        slot.ready = True

    def _say_who_is_left(self) -> None:
        """Raises EnvironmentFault where every node was refused."""
        if not self._slots and all(node.name in self._refused for node in self._ground.nodes(self._ranks)):
            name, why = next(iter(self._refused.items()))
            raise EnvironmentFault(f"no node may take part: {why}", where=name, hint="run `neuronqa doctor --address`")

    def _mourn(self, slot: _Slot, why: str) -> None:
        """An actor never became ready: its node rests. Raises EnvironmentFault once too many in a row did not, and
        nobody else works."""
        self._stillborn += 1
        self._resting[slot.node.id] = time.monotonic() + REST_S * self._stillborn
        if self._stillborn >= MOURNING and not self.size:
            raise EnvironmentFault(f"workers do not start: {why}", hint="run `neuronqa doctor`")

    def _bury(self, slot: _Slot, why: str) -> None:
        """An actor is gone with all it had in hand; another takes its place, there or elsewhere."""
        self._slots.remove(slot)
        self._births = {birth: other for birth, other in self._births.items() if other is not slot}
        self._ended += [Completion(token=token, results=None, lost=why) for token in slot.calls.values()]
        ray.kill(slot.handle)
        self._fill()

    def _kill_overdue(self) -> None:
        now = time.monotonic()
        for slot in list(self._slots):
            if all(deadline >= now for deadline in slot.deadlines.values()):
                continue
            if not slot.ready:
                self._mourn(slot, "the worker did not start in time")
            self._bury(slot, "the worker did not answer in time")


def _reason(error: RayError) -> str:
    """What happened to an actor in one line; an exception it raised by its own name."""
    cause = getattr(error, "cause", None) or error
    said = str(cause).strip().splitlines()
    return f"{type(cause).__name__}: {said[0][:160]}" if said else type(cause).__name__


def patience(jobs: Sequence[Job]) -> float:
    """Seconds after which a worker that has not answered is given up.

    That is what the longest job may take (every child's deadline, and probes), and slack for the others: should they
    all take so long, the batch is lost, and each is run again by itself.
    """
    return max(job.limits.deadline_s * (2 * len(job.tickets) + 1 + job.limits.probes) for job in jobs) + SLACK_S
