"""Taking submissions to verification, one after the other, and writing down what it found."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from neuronqa.db import fix_store, fixes, queries
from neuronqa.db.fixes import ItemRow
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.fix import ItemState, Judgement
from neuronqa.domain.policy import Policy
from neuronqa.errors import NeuronQAError
from neuronqa.fixqueue import basis, cases, intake
from neuronqa.fixqueue.reason import Reason
from neuronqa.fixqueue.service import FixQueue
from neuronqa.fixqueue.verdict import Conclusion, Stage, Submission, Target, Verdict

WATCH_S: Final = 3.0
HINT: Final = "hint"
_JUDGEMENT: Final = {
    Conclusion.ACCEPTED: Judgement.ACCEPTED,
    Conclusion.REJECTED: Judgement.REJECTED,
    Conclusion.INCONCLUSIVE: Judgement.INCONCLUSIVE,
    Conclusion.NEEDS_HUMAN: Judgement.NEEDS_HUMAN,
}

Verify = Callable[[Submission, Target, BuildOrder, Policy, bytes, Path], Verdict]
"""Submission, target, base, policy, seed of the hidden cases, a folder to work in."""


def verify_next(queue: FixQueue, actor: str, verify: Verify, item_id: int | None = None) -> ItemRow | None:
    """Verify the next submission that waits, or this item's; returns the item as it stands then, None where none waits.

    To be called on the main thread. A verification that fails by itself says so: it is inconclusive, never a pass.
    """
    with queue.engine.begin() as db:
        taken = fix_store.take(db, queue.clock(), actor, item_id)
    if taken is None:
        return None
    try:
        verdict = _verified(queue, taken, verify)
    except NeuronQAError as error:
        verdict = Verdict(
            conclusion=Conclusion.INCONCLUSIVE, stage=Stage.POLICY, reason=Reason.HARNESS, note=str(error)
        )
    except BaseException:
        _put_back(queue, taken.item_id, actor)
        raise
    with queue.engine.begin() as db:
        fix_store.judge(db, taken.id, _kept(verdict), queue.clock(), actor)
        return fixes.item(db, taken.item_id)


def verify_all(
    queue: FixQueue,
    actor: str,
    verify: Verify,
    told: Callable[[ItemRow, Any], None],
    *,
    item_id: int | None = None,
    watch: bool = False,
) -> None:
    """Verify whatever waits until nothing does, or for ever; `told` hears of each item and its judged submission."""
    while True:
        row = verify_next(queue, actor, verify, item_id)
        if row is not None:
            with queue.engine.connect() as db:
                told(row, fixes.submissions(db, row.id)[0])
        elif watch:
            time.sleep(WATCH_S)
        if item_id is not None or (row is None and not watch):
            return


def within(budget_s: float) -> Verify:
    """Verification in the sandbox, in so many seconds for each submission."""
    from neuronqa.fixqueue.verification import verify

    def verified(
        submission: Submission, target: Target, base: BuildOrder, policy: Policy, seed: bytes, folder: Path
    ) -> Verdict:
        return verify(submission, target, base=base, policy=policy, seed=seed, folder=folder, budget_s=budget_s)

    return verified


def verdict_of(row: Any) -> Verdict | None:
    """What was written of a submission; None while it waits."""
    if row.judgement is None:
        return None
    said = {value: key for key, value in _JUDGEMENT.items()}
    return Verdict(
        conclusion=said[Judgement(row.judgement)],
        stage=Stage(row.stage),
        reason=Reason(row.reason) if row.reason else None,
        hint=str((row.measured or {}).get(HINT, "")),
        note=row.note or "",
        measured=row.measured or {},
    )


def _verified(queue: FixQueue, taken: Any, verify: Verify) -> Verdict:
    submission = intake.load(Path(taken.folder), taken.sha256)
    with queue.engine.connect() as db:
        item = fixes.item(db, taken.item_id)
        row = queries.sweep(db, queries.sweep_name(db, item.sweep_id))
        target = cases.target(db, item)
    order, policy = basis.prepared(queue.engine, queue.overlays, row)
    folder = queue.home / "verification" / str(taken.id)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    try:
        return verify(submission, target, order, policy, bytes.fromhex(taken.seed), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _kept(verdict: Verdict) -> fix_store.Verdict:
    return fix_store.Verdict(
        judgement=_JUDGEMENT[verdict.conclusion],
        stage=verdict.stage.value,
        reason=verdict.reason.value if verdict.reason else "",
        note=verdict.note,
        measured={**verdict.measured, HINT: verdict.hint},
    )


def _put_back(queue: FixQueue, item_id: int, actor: str) -> None:
    with queue.engine.begin() as db:
        row = fixes.item(db, item_id)
        fix_store.move(db, row, ItemState.SUBMITTED, queue.clock(), actor, "verification was cut off", {})
