"""Did forward, backward and every optimizer step finish?"""

from __future__ import annotations

from typing import Final

from neuronqa.checks.ended import ended
from neuronqa.checks.ending import run_kind
from neuronqa.checks.finding import blocked, finding
from neuronqa.checks.seen import Seen
from neuronqa.domain.finding import Finding
from neuronqa.domain.outcome import Check, Kind

ANSWERS: Final = Check.RUN


def judge(seen: Seen) -> Finding:
    if seen.stopped is Check.RUN:
        return ended(Check.RUN, run_kind(seen.end), seen.end, seen.left)
    if seen.stopped is not None:
        return blocked(Check.RUN, seen.stopped)
    device = seen.device
    steps = device.steps if device else 0
    return finding(
        Check.RUN,
        Kind.RUN_PASS,
        f"ran to the end, {steps} optimizer steps",
        measure=device.seconds.get("steady_step") if device else None,
        steps=steps,
        seconds=dict(device.seconds) if device else {},
        memory_peak=device.memory_peak if device else 0,
    )
