"""Small makers of findings, so that every check says what it found in the same form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from neuronqa.domain.finding import Finding
from neuronqa.domain.identity import strict
from neuronqa.domain.outcome import Check, Kind, Outcome


def finding(
    check: Check,
    kind: Kind,
    words: str,
    *,
    detail: str = "",
    others: Iterable[Outcome] = (),
    measure: float | None = None,
    **evidence: Any,
) -> Finding:
    """`detail` and `evidence` may come from a model; the detail is cleaned, the evidence made strict JSON.

    The detail is the pattern that names a root cause: no model frames, no line numbers, no shapes.
    """
    outcome = Outcome.of(kind, detail)
    return Finding(
        check=check,
        outcome=outcome,
        others=tuple(dict.fromkeys(other for other in others if other != outcome)),
        measure=measure,
        evidence={"words": words, **{name: strict(value) for name, value in evidence.items()}},
    )


def blocked(check: Check, by: Check) -> Finding:
    """The check was not reached because `by` failed."""
    return finding(check, Kind.NOT_RUN_BLOCKED, f"not reached: {by.value} failed", detail=by.value)


def unobservable(check: Check, why: str) -> Finding:
    return finding(check, Kind.INCONCLUSIVE_NOT_OBSERVABLE, why)


def no_power(check: Check, why: str, *, detail: str = "", **evidence: Any) -> Finding:
    """The check could not have failed, so it does not pass."""
    return finding(check, Kind.INCONCLUSIVE_NO_POWER, why, detail=detail, **evidence)
