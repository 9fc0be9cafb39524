"""Build, inputs, reference: could the harness make the workload, and is its CPU run fit to compare with?"""

from __future__ import annotations

import numpy as np

from neuronqa.checks.ending import Ending, Manner, build_kind, reference_kind
from neuronqa.checks.finding import blocked, finding
from neuronqa.checks.pattern import masked
from neuronqa.checks.tensors import Array, Arrays
from neuronqa.domain.finding import Finding
from neuronqa.domain.observation import Exit, Observation, Progress
from neuronqa.domain.outcome import Check, Kind, Stage

_BUILDING = (Progress.STARTED, Progress.BUILD, Progress.INPUTS)


def judge(observation: Observation | None, arrays: Arrays, end: Ending, left: Exit) -> tuple[Finding, ...]:
    """The three findings of a reference child, the first failed one blocking the rest."""
    stopped = _stopped(end)
    if stopped is Check.BUILD:
        return (_failed(Check.BUILD, end, left), *(blocked(c, Check.BUILD) for c in (Check.INPUTS, Check.REFERENCE)))
    built = finding(Check.BUILD, Kind.BUILD_PASS, "the model was made from its config")
    if stopped is Check.INPUTS:
        return (built, _failed(Check.INPUTS, end, left), blocked(Check.REFERENCE, Check.INPUTS))
    if stopped is Check.REFERENCE or observation is None:
        # Inputs exist, but whether they are complete is only told at the end.
        inputs = finding(Check.INPUTS, Kind.INPUTS_PASS, "inputs and a loss were made")
        return (built, inputs, _failed(Check.REFERENCE, end, left))
    return (built, _inputs(observation), _fit(observation, arrays))


def fit(observation: Observation | None, arrays: Arrays) -> bool:
    """May a device be compared with this reference?"""
    if observation is None or observation.failure is not None or observation.reached is not Progress.DONE:
        return False
    return _fit(observation, arrays).outcome.kind is Kind.REFERENCE_PASS


def _stopped(end: Ending) -> Check | None:
    if end.finished:
        return None
    if end.failure is not None and end.failure.kind:
        stage = Kind(end.failure.kind).stage
        return {Stage.BUILD: Check.BUILD, Stage.INPUTS: Check.INPUTS}.get(stage, Check.REFERENCE)
    return Check.BUILD if end.progress in _BUILDING else Check.REFERENCE


def _failed(check: Check, end: Ending, left: Exit) -> Finding:
    failure = end.failure
    if failure is not None and failure.kind:
        kind, detail, words = Kind(failure.kind), masked(failure.detail), failure.message
    elif end.manner is Manner.ERROR and failure is not None:
        kind = build_kind(end) if check is Check.BUILD else reference_kind(end)
        detail, words = end.detail, f"raised {failure.error}: {failure.message[:300]}"
    else:
        kind = build_kind(end) if check is Check.BUILD else reference_kind(end)
        detail, words = end.detail, f"ended by {end.manner.value} in {end.progress.value}"
    return finding(
        check,
        kind,
        words,
        detail=detail,
        error=failure.error if failure else "",
        message=failure.message if failure else "",
        traceback=failure.traceback if failure else "",
        stack=left.stack,
        stderr=left.stderr_tail,
        peak_rss=left.peak_rss,
        wall_s=left.wall_s,
    )


def _inputs(observation: Observation) -> Finding:
    if observation.partial:
        left_out = ", ".join(observation.partial)
        return finding(
            Check.INPUTS,
            Kind.INPUTS_PARTIAL,
            f"ran only without: {left_out}",
            detail=left_out,
            repairs=observation.repairs,
        )
    return finding(Check.INPUTS, Kind.INPUTS_PASS, "inputs and a loss were made", repairs=observation.repairs)


def _fit(observation: Observation, arrays: Arrays) -> Finding:
    bad = {name: _non_finite(array) for name, array in arrays.items() if name.startswith(("same/", "oracle/"))}
    for group in ("output", "loss", "grad", "buffer", "param"):
        for name, count in bad.items():
            if count and name.split("/")[1] == group:
                words = f"{name} has {count} NaN or Inf among {arrays[name].size} elements on the CPU"
                return finding(Check.REFERENCE, Kind.REFERENCE_NON_FINITE, words, detail=group, tensor=name)
    if observation.steps and not any(name.startswith("same/grad/") for name in arrays):
        return finding(Check.REFERENCE, Kind.REFERENCE_NO_GRADIENT, "no parameter got a gradient")
    words = (
        f"{observation.parameters} parameters, {sum(n.startswith('oracle/') for n in arrays)} tensors with an oracle"
    )
    return finding(Check.REFERENCE, Kind.REFERENCE_PASS, words, seconds=dict(observation.seconds))


def _non_finite(array: Array) -> int:
    finite = np.isfinite(array) if array.dtype.kind == "f" else None
    return 0 if finite is None or finite.all() else int(np.count_nonzero(~finite))
