"""The build that counts now: a sweep's device with every overlay that has landed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sqlalchemy import Engine

from neuronqa.db import fixes
from neuronqa.db.queries import SweepRow
from neuronqa.device.prepare import prepare
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.fix import ItemState
from neuronqa.domain.policy import Policy
from neuronqa.fixqueue import intake, landing
from neuronqa.fixqueue.patch import PatchRefused
from neuronqa.sweep.request import SweepRequest


def prepared(engine: Engine, folder: Path, row: SweepRow) -> tuple[BuildOrder, Policy]:
    """The device of a sweep with the overlays that count, written to `folder`, ready to be loaded; and its policy."""
    with engine.connect() as db:
        paths = landing.write(landing.in_force(db).files, folder)
    return prepare(_order(row, paths)).order, Policy.from_json(row.policy)


def kernels(
    engine: Engine, row: SweepRow, paths: Sequence[str], items: Sequence[int]
) -> tuple[str, dict[int, Mapping[str, str]]]:
    """The hash of the build with these overlays, and of each item the hashes of the kernels it brings there."""
    vector = prepare(_order(row, paths)).vector
    found: dict[int, Mapping[str, str]] = {}
    files: dict[str, str] = {}
    with engine.connect() as db:
        for one in fixes.accepted(db, (ItemState.ACCEPTED, ItemState.LANDED, ItemState.CONFIRMED)):
            submission = intake.load(Path(one.folder), one.sha256)
            try:
                operators = landing.kernels_of(submission, one.item_id, files)
                files |= landing.changed(submission, one.item_id, files)
            except PatchRefused:
                continue
            if one.item_id in items:
                found[one.item_id] = {op: vector.kernels[op] for op in operators if op in vector.kernels}
    return vector.hash, found


def _order(row: SweepRow, paths: Sequence[str]) -> BuildOrder:
    """Of two overlays for one operator the last one counts, so what has landed goes after the sweep's own."""
    return landing.with_overlays(SweepRequest.kept(row.options, None).order, paths)
