"""The queue as everybody uses it: the command line, the MCP server, the agents and the verifier.

State lives in the database, texts and reproductions in a folder of the queue's own. Whoever calls says who they are;
an agent's word is proved by the token of its lease.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine

from neuronqa.db import clusters, fix_store, fixes, queries
from neuronqa.db.fix_store import Grant
from neuronqa.db.fixes import ItemRow
from neuronqa.db.queries import SweepRow
from neuronqa.domain.cluster import State
from neuronqa.domain.fix import Ending, ItemState
from neuronqa.errors import BadInput, NeuronQAError
from neuronqa.fixqueue import basis, intake, landing, offers
from neuronqa.fixqueue.description import describe
from neuronqa.fixqueue.offers import Considered, Refusal
from neuronqa.fixqueue.verdict import Form, Submission
from neuronqa.triage import actions, repro
from neuronqa.triage.repro import Rerun

HOME: Final = "NEURONQA_QUEUE"
DEFAULT_HOME: Final = "neuronqa-queue"
LEASE_S: Final = 1800.0
ABSTENTIONS: Final = 2
"""After as many a person looks."""
FILL: Final = 20
REPRO_S: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class Filled:
    """What filling did: every cluster of the sweep, and the items that are new."""

    considered: tuple[Considered, ...]
    items: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        return {"items": list(self.items), "clusters": [one.to_json() for one in self.considered]}


@dataclass(frozen=True, kw_only=True)
class FixQueue:
    """The queue of one database."""

    engine: Engine
    home: Path
    clock: Callable[[], float] = field(default=time.time)

    def __post_init__(self) -> None:
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)

    def folder(self, item_id: int) -> Path:
        """Where the reproduction of an item lies."""
        return self.home / "items" / str(item_id)

    @property
    def overlays(self) -> Path:
        """The overlays that count."""
        return self.home / "overlays"

    def consider(self, sweep: str | None = None) -> list[Considered]:
        """Every cluster of a triaged sweep (the newest if none is named), offered or not, and why not."""
        with self.engine.connect() as db:
            row = queries.sweep(db, sweep)
            return offers.consider(clusters.counts(db, row.id), fixes.live_clusters(db))

    def fill(self, sweep: str | None, actor: str, limit: int = FILL, budget_s: float = REPRO_S) -> Filled:
        """Offer the clusters that unlock most, up to `limit` new items, each with a reproduction that shows its cause.

        To be called on the main thread. `budget_s` is for one reproduction.
        """
        with self.engine.connect() as db:
            row = queries.sweep(db, sweep)
            counts = {one.cluster.id: one for one in clusters.counts(db, row.id)}
        considered = self.consider(row.name)
        made: list[int] = []
        for place, one in enumerate(considered):
            if one.refusal is not None or len(made) >= limit:
                continue
            item_id = self._offer(row, offers.offer(counts[one.cluster], row.id), actor, budget_s)
            if item_id is None:
                considered[place] = replace(one, refusal=Refusal.NOT_REPRODUCIBLE)
            else:
                made.append(item_id)
        return Filled(considered=tuple(considered), items=tuple(made))

    def _offer(self, row: SweepRow, offered: fix_store.Offer, actor: str, budget_s: float) -> int | None:
        fresh = self.home / "items" / f"new-{offered.cluster_id}"
        shutil.rmtree(fresh, ignore_errors=True)
        with self.engine.connect() as db:
            made = repro.make(db, row, str(offered.cluster_id), fresh, budget_s)
        if not made.same:
            shutil.rmtree(fresh)
            return None
        describe(fresh, offered.operator)
        with self.engine.begin() as db:
            item_id = fix_store.offer(db, offered, self.clock(), actor)
            if item_id is not None:
                shutil.rmtree(self.folder(item_id), ignore_errors=True)
                fresh.rename(self.folder(item_id))
        return item_id

    def claim(self, agent: str, item_id: int | None = None, seconds: float = LEASE_S) -> Grant | None:
        """Lease the next free item, or this one; None where there is none."""
        with self.engine.begin() as db:
            return fix_store.claim(db, agent, self.clock(), seconds, item_id)

    def heartbeat(self, token: str, seconds: float = LEASE_S) -> float:
        """Go on holding an item; returns until when (Unix time). Raises LateLease."""
        with self.engine.begin() as db:
            return fix_store.heartbeat(db, token, self.clock(), seconds)

    def held(self, token: str) -> ItemRow:
        """The item a token holds. Raises LateLease."""
        with self.engine.connect() as db:
            return fixes.item(db, fix_store.leased(db, token, self.clock()).item_id)

    def submit_text(self, token: str, form: Form, content: str) -> int:
        """Hand in an overlay or a diff; returns the submission's number. Raises LateLease, BadInput."""
        return self._submit(token, intake.of_text(form, content, self.base()))

    def submit_file(self, token: str, path: Path) -> int:
        """Hand in a file of this machine, or a build by its path."""
        return self._submit(token, intake.of_path(path, self.base()))

    def _submit(self, token: str, submission: Submission) -> int:
        self.held(token)
        path = intake.keep(submission, self.home / "submissions")
        with self.engine.begin() as db:
            return fix_store.submit(
                db, token, submission.form.value, submission.sha256, str(path.absolute()), self.clock()
            )

    def base(self) -> dict[str, str]:
        """The overlays that count now, name -> text: what a diff is made against."""
        with self.engine.connect() as db:
            return dict(landing.in_force(db).files)

    def release(self, token: str, why: str = "") -> None:
        """Give an item back."""
        with self.engine.begin() as db:
            fix_store.give_back(db, token, Ending.RELEASED, why, self.clock())

    def abstain(self, token: str, why: str) -> None:
        """Say that this agent cannot fix it, and why. After the second a person looks."""
        if not why.strip():
            raise BadInput("an abstention needs a reason", hint="say what stands in the way")
        with self.engine.begin() as db:
            item_id = fix_store.leased(db, token, self.clock()).item_id
            earlier = fixes.endings(db, item_id, Ending.ABSTAINED)
            fix_store.give_back(
                db, token, Ending.ABSTAINED, why[:500], self.clock(), to_person=earlier + 1 >= ABSTENTIONS
            )

    def run_repro(self, token: str) -> Rerun:
        """Run the held item's reproduction once more, on the device with every overlay that counts. Main thread."""
        item = self.held(token)
        with self.engine.connect() as db:
            row = queries.sweep(db, queries.sweep_name(db, item.sweep_id))
        order, policy = basis.prepared(self.engine, self.overlays, row)
        return repro.run(self.folder(item.id), order, policy)

    def decide(self, item_id: int, accept: bool, why: str, actor: str) -> ItemState:
        """What a person says of an item that waits for one: accepted as it was handed in, or offered anew."""
        if not why.strip():
            raise BadInput("a decision needs a reason")
        target = ItemState.ACCEPTED if accept else ItemState.QUEUED
        with self.engine.begin() as db:
            row = fixes.item(db, item_id)
            if row.state is not ItemState.NEEDS_HUMAN:
                raise BadInput(f"item {item_id} is {row.state.value}: it waits for nobody's decision")
            evidence: dict[str, Any] = {}
            if accept:
                evidence = {"submission": fix_store.accept_last(db, item_id, self.clock())}
            fix_store.move(db, row, target, self.clock(), actor, why, evidence)
        return target

    def cancel(self, item_id: int, why: str, actor: str) -> None:
        """Take an item off the queue."""
        with self.engine.begin() as db:
            fix_store.cancel(db, item_id, why, self.clock(), actor)

    def land(self, actor: str) -> Landed:
        """Make every accepted submission part of the next build. Builds the device to name that build."""
        with self.engine.connect() as db:
            waiting = fixes.items(db, [ItemState.ACCEPTED], limit=landing.ALL)
            force = landing.in_force(db, (ItemState.ACCEPTED, ItemState.LANDED, ItemState.CONFIRMED))
            row = queries.sweep(db, queries.sweep_name(db, waiting[-1].sweep_id)) if waiting else None
        paths = landing.write(force.files, self.overlays)
        if row is None:
            return Landed(items=(), overlays=paths)
        build, kernels = basis.kernels(self.engine, row, paths, [item.id for item in waiting])
        done = []
        for item in waiting:
            with self.engine.begin() as db:
                if item.id in force.refused:
                    fix_store.move(db, item, ItemState.CANCELLED, self.clock(), actor, force.refused[item.id], {})
                    continue
                evidence = {"build": build, landing.KERNELS: kernels.get(item.id, {})}
                fix_store.move(
                    db, item, ItemState.LANDED, self.clock(), actor, "part of the next build", evidence,
                    landed_build=build,
                )  # fmt: skip
            done.append(item.id)
            self._mark(item, actor)
        return Landed(items=tuple(done), overlays=paths)

    def _mark(self, item: ItemRow, actor: str) -> None:
        with self.engine.connect() as db:
            one = clusters.by_ids(db, [item.cluster_id])[item.cluster_id]
        if one.state.open:
            reason = f"item {item.id} of the fix queue"
            actions.mark(self.engine, str(one.id), State.LANDED, actor=actor, reason=reason)

    def settle(self, sweep: str | None, actor: str) -> list[landing.Settled]:
        """Confirm or revert what landed, by a triaged sweep on a build that has it."""
        with self.engine.begin() as db:
            done = landing.settle(db, queries.sweep(db, sweep), self.clock(), actor)
        with self.engine.connect() as db:
            landing.write(landing.in_force(db).files, self.overlays)
        return done

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read by; leases that are over are given back first."""
        with self.engine.begin() as db:
            fix_store.expire(db, self.clock())
        with self.engine.connect() as db:
            yield db


@dataclass(frozen=True, kw_only=True)
class Landed:
    """Items that are part of the next build, and its overlays."""

    items: tuple[int, ...]
    overlays: tuple[str, ...]


def home_of(named: Path | None) -> Path:
    """`named`, else `$NEURONQA_QUEUE`, else `neuronqa-queue` in the current folder. Raises BadInput for no folder."""
    path = (named or Path(os.environ.get(HOME) or DEFAULT_HOME)).absolute()
    if path.exists() and not path.is_dir():
        raise BadInput("the queue's folder is a file", where=str(path), hint=f"give --home or {HOME}")
    return path


def explain(error: NeuronQAError) -> dict[str, str]:
    """An error as an agent is told it."""
    return {"error": error.what, "hint": error.hint}
