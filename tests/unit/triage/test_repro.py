"""A reproduction has more time than the sweep had, unless time is what ran out."""

from __future__ import annotations

import pytest

from neuronqa.domain.outcome import Kind, Outcome
from neuronqa.triage.repro import PATIENCE, patient
from tests.builders import QUICK


@pytest.mark.parametrize("kind", [*Kind])
def test_only_a_failure_by_time_keeps_its_deadline(kind: Kind) -> None:
    late = kind.value.endswith(":timeout")
    given = patient(QUICK, Outcome(kind)).limits
    assert given.deadline_s == QUICK.limits.deadline_s * (1 if late else PATIENCE)
    assert given.memory_mb == QUICK.limits.memory_mb
