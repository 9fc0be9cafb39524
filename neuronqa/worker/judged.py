"""A device run of a trial as its judge sees it, and how far a plant moved it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from neuronqa.checks import effect
from neuronqa.checks.seen import Reference
from neuronqa.domain.case import Variant
from neuronqa.domain.finding import Finding
from neuronqa.domain.observation import MEMORY, Observation
from neuronqa.domain.outcome import Check
from neuronqa.domain.policy import Thresholds
from neuronqa.worker.exchange import Arrays


@dataclass(frozen=True)
class JudgedRun:
    """A device run and what it left."""

    findings: tuple[Finding, ...]
    observation: Observation | None
    arrays: Arrays

    @property
    def outcomes(self) -> dict[str, str]:
        return {one.check.value: str(one.outcome) for one in self.findings}

    @property
    def blamed(self) -> str:
        """The operator parity, or else training, names; or the memory that changed between two."""
        details = [one.outcome.detail for one in self.findings if one.check in (Check.PARITY, Check.TRAIN)]
        return next((one for one in details if "::" in one or one.startswith(MEMORY)), "")

    @property
    def finished(self) -> bool:
        return self.outcomes["run"] == "run:pass"


def moved(reference: Reference, variant: Variant, thresholds: Thresholds, plain: JudgedRun, faulty: JudgedRun) -> float:
    """Tolerances between a run with a plant and the one without; infinite where it did not get as far."""
    if not faulty.finished:
        return math.inf
    tensors = effect.of_tensors(reference, plain.arrays, faulty.arrays)
    return max(tensors, effect.of_curves(reference, plain.arrays, faulty.arrays, variant.dtype, thresholds))
