"""Columns that several tables share."""

from __future__ import annotations

from typing import Final

from neuronqa.dashboard.view import Column, Form, to

FAMILY: Final = Column(name="family", title="architecture", href=to("/models", "family", "family"))
CLASS: Final = Column(name="class_name", title="class")
ENTRIES: Final = Column(name="entries", title="entries", form=Form.COUNT)
DOWNLOADS: Final = Column(name="downloads", title="downloads", form=Form.COUNT)
STATE: Final = Column(name="state", title="state", form=Form.OUTCOME)
DETAIL: Final = Column(name="detail", title="detail", form=Form.MONO)
EVIDENCE: Final = Column(name="evidence", title="evidence")
VARIANT: Final = Column(name="variant", title="variant", form=Form.MONO)

MODELS: Final = (
    Column(name="rank", title="rank", form=Form.COUNT),
    Column(name="name", title="model", href=to("/models", "rank")),
    FAMILY,
    STATE,
    DETAIL,
    EVIDENCE,
    Column(name="task", title="task"),
    DOWNLOADS,
)
WORKLOADS: Final = (
    Column(name="hash", title="workload", form=Form.MONO, href=to("/workloads", "hash")),
    FAMILY,
    CLASS,
    STATE,
    DETAIL,
    EVIDENCE,
    ENTRIES,
    DOWNLOADS,
)
CASES: Final = (
    Column(name="attempt", title="attempt", form=Form.MONO, href=to("/cases", "attempt")),
    Column(name="family", title="architecture", href=to("/cases", "family", "family")),
    Column(name="class_name", title="class"),
    VARIANT,
    Column(name="check", title="check"),
    Column(name="outcome", title="outcome", form=Form.OUTCOME),
    DETAIL,
    Column(name="attempt_kind", title="kind"),
)
