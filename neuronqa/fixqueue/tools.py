"""What agents and reviewers can do over MCP: one method a tool. None takes a path, none starts a shell.

Every answer is JSON below 2,000 tokens; what is longer comes in pieces, by a cursor.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field
from sqlalchemy import Connection

from neuronqa.db import fixes, queries
from neuronqa.db.browse import cases as case_pages
from neuronqa.db.browse import clusters as cluster_pages
from neuronqa.db.browse import models as model_pages
from neuronqa.db.browse import ops as op_pages
from neuronqa.db.browse.listing import Ask, Listing, browse
from neuronqa.domain.fix import ItemState
from neuronqa.errors import BadInput, EnvironmentFault, NeuronQAError
from neuronqa.fixqueue import bundle as bundles
from neuronqa.fixqueue import intake
from neuronqa.fixqueue.answers import answer, part, rows
from neuronqa.fixqueue.page import item_page
from neuronqa.fixqueue.service import FixQueue
from neuronqa.fixqueue.tokens import Caller, Scope
from neuronqa.fixqueue.verdict import Form
from neuronqa.fixqueue.verifier import verdict_of
from neuronqa.report.build import build
from neuronqa.report.cluster import cluster_json, cluster_page
from neuronqa.report.value import to_json

COMMAND_S: Final = 300
CLI: Final = (sys.executable, "-c", "from neuronqa.cli.main import run; run()")
_REPORTED: Final = (
    "sweep", "state", "catalog", "policy", "device", "entries", "gates", "controls", "audit", "cause_count",
    "verdicts_are_for",
)  # fmt: skip

Lease = Annotated[str, Field(description="The token `claim` gave.")]
Cursor = Annotated[str, Field(description="`next` of the answer before; empty to begin.")]
Item = Annotated[int, Field(description="An item's number.")]
Why = Annotated[str, Field(description="For the journal.")]


class Forbidden(NeuronQAError):
    """The token's scope does not allow this."""


@dataclass(frozen=True, kw_only=True)
class Tools:
    """The tools over one queue. `caller` says who calls now."""

    queue: FixQueue
    db: str
    """As `--db` names it, for commands that are started."""
    caller: Callable[[], Caller]
    _one: threading.Lock = field(default_factory=threading.Lock)
    """Commands that run on the device take turns."""

    def list(
        self,
        state: Annotated[str, Field(description="Only items in this state; empty for all.")] = "queued",
        cursor: Cursor = "",
    ) -> str:
        """List items of the queue: root causes of model failures that wait for a kernel."""
        if state and state not in set(ItemState):
            raise BadInput(f"there is no state {state!r:.40}", hint=", ".join(ItemState))
        if cursor and not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 19):
            raise BadInput("there is no such cursor")
        states = [ItemState(state)] if state else []

        def read(limit: int) -> tuple[list[Any], str]:
            with self.queue.reading() as db:
                found = fixes.items(db, states, after=int(cursor or 0), limit=limit + 1)
            return [one.to_json() for one in found[:limit]], str(found[limit - 1].id) if len(found) > limit else ""

        return rows(read)

    def get(self, item: Item) -> str:
        """Show an item: what was handed in, what was said of it, its journal, newest first."""
        with self.queue.reading() as db:
            return answer(item_page(db, item, operator=self.caller().scope is not Scope.AGENT))

    def claim(
        self, item: Annotated[int | None, Field(description="An item's number; leave out for the next.")] = None
    ) -> str:
        """Take an item. The lease lasts half an hour; `heartbeat` prolongs it."""
        grant = self.queue.claim(self._allowed(Scope.AGENT).name, item)
        if grant is None:
            return answer({"item": None})
        return answer({"item": grant.item.to_json(), "lease": grant.token, "expires": grant.expires})

    def heartbeat(self, lease: Lease) -> str:
        """Go on holding an item for another half hour."""
        self._allowed(Scope.AGENT)
        return answer({"expires": self.queue.heartbeat(lease)})

    def bundle(self, lease: Lease, cursor: Cursor = "") -> str:
        """Read the task: the failure, its script, the operator, how to write a kernel and how it is checked."""
        self._allowed(Scope.AGENT)
        return part(bundles.text(bundles.bundle(self.queue, lease)), cursor)

    def run_repro(self, lease: Lease) -> str:
        """Run the held item's script once more, on the device as it is now."""
        self._allowed(Scope.AGENT)
        self.queue.held(lease)
        return self._command("queue", "run-repro", "--json", lease=lease)

    def attempt(self, lease: Lease, content: Annotated[str, Field(description="The text of an overlay.")]) -> str:
        """Try a kernel before it is handed in: the rules, drawn calls, the shown cases. It uses up no attempt."""
        self._allowed(Scope.AGENT)
        item = self.queue.held(lease)
        intake.of_text(Form.OVERLAY, content, {})
        with tempfile.TemporaryDirectory(prefix="neuronqa-try-") as folder:
            file = Path(folder) / "overlay.py"
            file.write_text(content, encoding="utf-8")
            return self._command("try", str(file), "--cluster", str(item.cluster_id), "--json", lease=lease)

    def submit(
        self,
        lease: Lease,
        content: Annotated[str, Field(description="The text of an overlay, or of a unified diff.")],
        form: Annotated[str, Field(description="`overlay` or `diff`.")] = "overlay",
    ) -> str:
        """Hand a kernel in. This ends the lease; ask `verdict` what was found."""
        self._allowed(Scope.AGENT)
        if form not in (Form.OVERLAY, Form.DIFF):
            raise BadInput(f"{form!r:.20} is not taken here", hint="overlay or diff")
        item = self.queue.held(lease).id
        return answer({"item": item, "submission": self.queue.submit_text(lease, Form(form), content)})

    def verdict(self, item: Item) -> str:
        """Say what was found of an item's last submission: stage and reason, or that it still waits."""
        with self.queue.reading() as db:
            row = fixes.item(db, item)
            found = [verdict_of(one) for one in fixes.submissions(db, item)][:1]
        said = found[0].shown() if found and found[0] else None
        return answer({"item": item, "state": row.state.value, "submitted": bool(found), "verdict": said})

    def release(self, lease: Lease, why: Why = "") -> str:
        """Give the held item back."""
        self._allowed(Scope.AGENT)
        self.queue.release(lease, why)
        return answer({"released": True})

    def abstain(self, lease: Lease, why: Why) -> str:
        """Say that it cannot be fixed with what is allowed, and why. That is an answer too."""
        self._allowed(Scope.AGENT)
        self.queue.abstain(lease, why)
        return answer({"abstained": True})

    def decide(self, item: Item, accept: bool, why: Why) -> str:
        """As a reviewer: accept what was handed in for an item that waits for a person, or offer it anew."""
        who = self._allowed(Scope.REVIEWER)
        return answer({"state": self.queue.decide(item, accept, why, who.name).value})

    def cancel(self, item: Item, why: Why) -> str:
        """As an administrator: take an item off the queue."""
        self.queue.cancel(item, why, self._allowed(Scope.ADMIN).name)
        return answer({"cancelled": True})

    def report(self) -> str:
        """Say how many registered models are shown to work, rung by rung, in the newest sweep."""
        with self.queue.engine.connect() as db:
            said = to_json(build(db))
        return answer({name: said[name] for name in _REPORTED})

    def cluster(
        self,
        named: Annotated[str, Field(description="A cluster's id or cause key; empty lists them.")] = "",
        cursor: Cursor = "",
    ) -> str:
        """Show a root cause, or list those of the newest sweep in the order of fixes."""
        with self.queue.engine.connect() as db:
            if named:
                return answer(cluster_json(cluster_page(db, named)))
            return self._rows(db, cluster_pages.listing(queries.sweep(db)), Ask(after=cursor))

    def op(
        self,
        named: Annotated[str, Field(description="An operator, like aten::cumsum; empty lists them.")] = "",
        cursor: Cursor = "",
    ) -> str:
        """Say how the device ran an operator in the newest sweep, or list operators with who needs them."""
        with self.queue.engine.connect() as db:
            sweep = queries.sweep(db).id
            if named:
                return answer({"op": named, "uses": [dict(row._mapping) for row in op_pages.uses(db, sweep, named)]})
            return self._rows(db, op_pages.listing(sweep), Ask(after=cursor))

    def model(
        self, search: Annotated[str, Field(description="Part of a model's name.")] = "", cursor: Cursor = ""
    ) -> str:
        """List models by a part of their name, with where each stands in the newest sweep."""
        with self.queue.engine.connect() as db:
            return self._rows(db, model_pages.listing(queries.sweep(db)), Ask(search=search, after=cursor))

    def search(self, words: Annotated[str, Field(description="Words of a message.")], cursor: Cursor = "") -> str:
        """Search what failing checks said in the newest sweep."""
        with self.queue.engine.connect() as db:
            return self._rows(db, case_pages.listing(db, queries.sweep(db)), Ask(search=words, after=cursor))

    def _rows(self, db: Connection, listing: Listing, ask: Ask) -> str:
        def read(limit: int) -> tuple[Any, str]:
            found = browse(db, listing, Ask(search=ask.search, after=ask.after, limit=limit))
            return list(found.rows), found.next

        return rows(read)

    def _allowed(self, scope: Scope) -> Caller:
        caller = self.caller()
        if not caller.scope.allows(scope):
            raise Forbidden(f"a token of scope {caller.scope.value} may not do this", hint=f"it takes {scope.value}")
        return caller

    def _command(self, *words: str, lease: str = "") -> str:
        """What a command of ours says, as JSON: a process of its own, because it needs a main thread."""
        environment = {**os.environ, "NEURONQA_LEASE": lease, "NEURONQA_DB": self.db}
        environment["NEURONQA_QUEUE"] = str(self.queue.home)
        with self._one:
            try:
                child = subprocess.run(
                    (*CLI, *words),
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    env=environment,
                    timeout=COMMAND_S,
                )
            except subprocess.TimeoutExpired as error:
                raise EnvironmentFault(f"no answer in {COMMAND_S} s") from error
        if not child.stdout.strip():
            said = (child.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise EnvironmentFault(said.removeprefix("neuronqa: ")[:300])
        return part(child.stdout, "")
