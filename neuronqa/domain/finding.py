"""What the judge says: one outcome per check, with the evidence in words and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from neuronqa.domain.outcome import Check, Outcome


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One check's answer about one attempt."""

    check: Check
    outcome: Outcome
    others: tuple[Outcome, ...] = ()
    """Further failing outcomes of the same check, each a cause of its own (the second operator that fell back)."""
    measure: float | None = None
    """How wrong, on the check's own scale, so that cases can be ordered; None where there is no scale."""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """Strict JSON: what was compared, at what tolerance, how far off it was. Always holds `words`, one sentence."""
