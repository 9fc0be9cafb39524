"""From accepted to confirmed: what counts is one folder of overlays, made of every submission that has landed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection

from neuronqa.db import clusters, fix_store, fixes, occurrences
from neuronqa.db.fixes import ItemRow
from neuronqa.db.queries import SweepRow
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.fix import ItemState
from neuronqa.domain.outcome import Kind, Stage, Standing
from neuronqa.fixqueue import intake, patch
from neuronqa.fixqueue.patch import PatchRefused
from neuronqa.fixqueue.policy import declared
from neuronqa.fixqueue.verdict import Form, Submission
from neuronqa.triage.analysis import lane

ALL: Final = 100_000
KERNELS: Final = "kernels"
"""In the journal's evidence of a landing: operator -> hash of the kernel in the build it became part of."""
_NO_ANSWER: Final = (Stage.INFRA, Stage.INCONCLUSIVE, Stage.NOT_RUN)
"""A case that failed for a reason of ours does not fail by the cause, and says nothing of the fix."""


@dataclass(frozen=True, kw_only=True)
class Force:
    """The overlays that count, name -> text, and the items whose diff no longer applies."""

    files: Mapping[str, str]
    refused: Mapping[int, str] = field(default_factory=dict)


def in_force(db: Connection, states: Sequence[ItemState] = (ItemState.LANDED, ItemState.CONFIRMED)) -> Force:
    """What the accepted submissions of the items in these states make together, in the order they were handed in."""
    files: dict[str, str] = {}
    refused: dict[int, str] = {}
    for row in fixes.accepted(db, states):
        submission = intake.load(Path(row.folder), row.sha256)
        try:
            files |= changed(submission, row.item_id, files)
        except PatchRefused as error:
            refused[row.item_id] = str(error)
    return Force(files=files, refused=refused)


def changed(submission: Submission, item_id: int, files: Mapping[str, str]) -> dict[str, str]:
    """The files a submission makes or changes. Raises PatchRefused."""
    match submission.form:
        case Form.OVERLAY:
            return {f"item_{item_id}.py": submission.content}
        case Form.DIFF:
            return patch.apply(submission.content, files)
        case Form.BUILD:
            return {}


def write(files: Mapping[str, str], folder: Path) -> tuple[str, ...]:
    """Make the folder hold these files and no other Python file; returns their paths in order."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.py"):
        if old.name not in files:
            old.unlink()
    for name, text in files.items():
        fresh = folder / f"{name}.new"
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(folder / name)
    return tuple(str(folder / name) for name in files)


def with_overlays(order: BuildOrder, paths: Sequence[str]) -> BuildOrder:
    """The order with these overlays after its own."""
    return replace(order, overlays=(*order.overlays, *(path for path in paths if path not in order.overlays)))


def kernels_of(submission: Submission, item_id: int, before: Mapping[str, str]) -> tuple[str, ...]:
    """The operators whose kernels a submission brings."""
    texts = changed(submission, item_id, before).values()
    return tuple(sorted({operator for text in texts for operator in declared(text)}))


@dataclass(frozen=True, kw_only=True)
class Settled:
    """What a sweep said of an item that had landed."""

    item: int
    state: ItemState
    why: str


def settle(db: Connection, row: SweepRow, now: float, actor: str) -> list[Settled]:
    """Confirm or revert every landed item whose kernels are in the build of this (triaged) sweep.

    Confirmed: none of the cases that failed by its cause fails by it now, and the check gave an answer for at least
    one. Reverted: some still does. Anything else says nothing, and the item stays landed.
    """
    done = []
    where = lane(row)
    known: dict[int, dict[int, list[str]]] = {}
    for item in fixes.items(db, [ItemState.LANDED], limit=ALL):
        if item.lane != where or item.sweep_id >= row.id or not _in_build(db, item, row):
            continue
        if item.sweep_id not in known:
            known[item.sweep_id] = _answers(db, row.id, item.sweep_id)
        state, why = _fate(db, row.id, item, known[item.sweep_id].get(item.cluster_id, []))
        if state is not None:
            fix_store.move(db, item, state, now, actor, why, {"sweep": row.name, "build": row.build_hash})
            done.append(Settled(item=item.id, state=state, why=why))
    return done


def _in_build(db: Connection, item: ItemRow, row: SweepRow) -> bool:
    """Is each of its kernels the one the build has?"""
    for event in fixes.journal(db, item.id):
        if event.after == ItemState.LANDED.value:
            landed: Mapping[str, Any] = event.evidence.get(KERNELS, {})
            have = row.build.get("kernels", {})
            return bool(landed) and all(have.get(op) == hash_ for op, hash_ in landed.items())
    return False


def _answers(db: Connection, sweep_id: int, base_id: int) -> dict[int, list[str]]:
    """Cluster -> what the check says now of each case that failed by it then; cases that were not run are left out."""
    found: dict[int, list[str]] = {}
    for row in occurrences.fates(db, sweep_id, base_id):
        if row.kind is not None:
            found.setdefault(row.cluster_id, []).append(row.kind)
    return found


def _fate(db: Connection, sweep_id: int, item: ItemRow, kinds: Sequence[str]) -> tuple[ItemState | None, str]:
    still = clusters.failing(db, sweep_id, item.cluster_id, words=False)
    if still:
        return ItemState.REVERTED, f"{len({one.case_id for one in still})} cases still fail by it"
    answers = [one for one in map(Kind, kinds) if one.stage not in _NO_ANSWER]
    if not answers:
        return None, ""
    passed = sum(one.rules.standing is Standing.PASS for one in answers)
    return ItemState.CONFIRMED, f"none of {len(answers)} cases fails by it any more, {passed} pass the check"
