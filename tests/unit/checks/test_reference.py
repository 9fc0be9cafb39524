"""What the harness itself could not do is said, and never blamed on a device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from neuronqa.checks import reference as references
from neuronqa.checks.ending import ending
from neuronqa.domain.observation import Exit, Failure, Observation, Progress
from tests.unit.checks.made import DONE, Arrays, reference_arrays, reference_observation

ARRAYS = reference_arrays()
WHOLE = reference_observation(ARRAYS)
B, R = Progress.BUILD, Progress.REFERENCE


def failed(progress: Progress, error: str, detail: str = "", kind: str = "") -> Observation:
    failure = Failure(progress=progress, error=error, message=f"{error}: {detail}", kind=kind, detail=detail)
    return replace(WHOLE, reached=progress, failure=failure)


def died(progress: Progress, **how: Any) -> Exit:
    return replace(DONE, done=False, progress=progress, **how)


def outcomes(seen: Observation | None, left: Exit = DONE, arrays: Arrays | None = None) -> list[str]:
    found = references.judge(seen, ARRAYS if arrays is None else arrays, ending(seen, left), left)
    return [str(one.outcome) for one in found]


VACUOUS = failed(B, "BuildFailure", "no layers", "build:vacuous")
PACKAGE = failed(B, "BuildFailure", "natten", "build:missing-dependency")
INPUTS = failed(B, "BuildFailure", "pixel_values", "inputs:error")
FLAT = failed(R, "LossWithoutGradient", "", "reference:no-gradient")
PARTIAL = replace(WHOLE, partial=("image",))
NO_INPUTS = ("build:pass", "inputs:error(pixel_values)", "not-run:blocked(inputs)")
P = "build:pass", "inputs:pass", "reference:pass"
BLOCKED = "not-run:blocked(build)", "not-run:blocked(build)"
TABLE = [
    ("sound", WHOLE, DONE, P),
    ("build raised", failed(B, "ValueError"), DONE, ("build:error(ValueError)", *BLOCKED)),
    ("vacuous", VACUOUS, DONE, ("build:vacuous(no layers)", *BLOCKED)),
    ("needs a package", PACKAGE, DONE, ("build:missing-dependency(natten)", *BLOCKED)),
    ("build hung", None, died(B, timed_out=True), ("build:timeout(build)", *BLOCKED)),
    ("build ate memory", None, died(B, memory_exceeded=True), ("build:oom", *BLOCKED)),
    ("build crashed", None, died(B, signal="SIGSEGV"), ("build:crash(SIGSEGV)", *BLOCKED)),
    ("no inputs", INPUTS, DONE, NO_INPUTS),
    ("forward raised", failed(R, "IndexError"), DONE, (*P[:2], "reference:error(IndexError)")),
    ("no gradient", FLAT, DONE, (*P[:2], "reference:no-gradient")),
    ("hung", None, died(R, timed_out=True), (*P[:2], "reference:timeout(reference)")),
    ("crashed", None, died(R, signal="SIGFPE"), (*P[:2], "reference:crash(SIGFPE)")),
    ("left", None, died(R, code=0), (*P[:2], "reference:crash(exit 0)")),
    ("image left out", PARTIAL, DONE, ("build:pass", "inputs:partial(image)", "reference:pass")),
    ("said nothing", None, DONE, (*P[:2], "infra:harness(no observation)")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "seen", "left", "expected"), TABLE, ids=[row[0] for row in TABLE])
def test_a_reference_that_ends_so_is_judged_so(
    name: str, seen: Observation | None, left: Exit, expected: tuple[str, ...]
) -> None:
    assert outcomes(seen, left) == list(expected), name


@pytest.mark.parametrize("name", ["same/output/logits", "oracle/loss", "same/grad/first.bias"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_reference_that_is_not_finite_is_unfit(name: str, value: float) -> None:
    spoilt = {**ARRAYS, name: np.full_like(ARRAYS[name], value)}
    assert outcomes(WHOLE, arrays=spoilt)[2].startswith("reference:non-finite")
    assert not references.fit(WHOLE, spoilt)


def test_a_reference_in_which_no_parameter_got_a_gradient_is_unfit() -> None:
    bare = {name: array for name, array in ARRAYS.items() if "/grad/" not in name}
    assert outcomes(WHOLE, arrays=bare)[2] == "reference:no-gradient"


def test_an_absent_or_failed_reference_is_unfit() -> None:
    assert not references.fit(None, {})
    assert not references.fit(failed(R, "IndexError"), ARRAYS)
    assert references.fit(WHOLE, ARRAYS)
