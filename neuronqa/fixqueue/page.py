"""One item for whoever looks into it."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import Connection

from neuronqa.db import fixes
from neuronqa.fixqueue.verifier import verdict_of


def item_page(db: Connection, item_id: int, operator: bool = False) -> dict[str, Any]:
    """An item, what was handed in for it, and its journal, newest first. Raises BadInput for none.

    With `operator`, notes and measurements too, which may name hidden cases.
    """
    item = fixes.item(db, item_id)
    return {
        **item.to_json(),
        "version": item.version,
        "not_before": item.not_before,
        "landed_build": item.landed_build,
        "submissions": [_submission(row, operator) for row in fixes.submissions(db, item_id)],
        "journal": [
            {"at": _when(row.at), "actor": row.actor, "before": row.before, "after": row.after, "why": row.why}
            for row in fixes.journal(db, item_id)
        ],
    }


def _submission(row: Any, operator: bool) -> dict[str, Any]:
    verdict = verdict_of(row)
    said = {
        "id": row.id,
        "kind": row.kind,
        "sha256": row.sha256,
        "made": _when(row.made),
        "verdict": verdict.shown() if verdict else None,
    }
    return said | ({"note": row.note, "measured": row.measured} if operator else {})


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))
