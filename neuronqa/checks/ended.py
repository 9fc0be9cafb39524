"""The finding of a run that did not get to its end, with everything that is known of how it ended."""

from __future__ import annotations

from neuronqa.checks.ending import Ending, Manner
from neuronqa.checks.finding import finding
from neuronqa.domain.finding import Finding
from neuronqa.domain.observation import Exit
from neuronqa.domain.outcome import Check, Kind


def ended(check: Check, kind: Kind, end: Ending, left: Exit) -> Finding:
    """Say how `end` came about. The detail of a signal names the operator that was running, if the device kept it."""
    failure = end.failure
    return finding(
        check,
        kind,
        _words(end, left),
        detail=f"{end.detail} {left.last_op}".strip() if end.manner is Manner.SIGNAL else end.detail,
        progress=end.progress,
        error=failure.error if failure else "",
        message=failure.message if failure else "",
        traceback=failure.traceback if failure else "",
        code=failure.code if failure else "",
        op=(failure.op if failure else "") or left.last_op,
        signal=left.signal,
        exit_code=left.code,
        stack=left.stack,
        stderr=left.stderr_tail,
        peak_rss=left.peak_rss,
        wall_s=left.wall_s,
    )


def _words(end: Ending, left: Exit) -> str:
    where = f"in {end.progress.value}" + (f", running {left.last_op}" if left.last_op else "")
    match end.manner:
        case Manner.TIMEOUT:
            return f"killed at its deadline {where}"
        case Manner.MEMORY:
            return f"ran out of memory {where}"
        case Manner.SIGNAL:
            return f"died of {end.detail} {where}"
        case Manner.EXIT:
            return f"the process left without a word ({end.detail}) {where}"
        case Manner.UNTOLD:
            return "the child said it was done but left no observation"
        case Manner.ERROR if end.failure is not None:
            first = end.failure.message.strip().splitlines()
            return f"raised {end.failure.error} {where}: {first[0][:300] if first else ''}"
        case _:
            return f"ended {where}"
