"""Did the build load and the model reach the device?"""

from __future__ import annotations

from typing import Final

from neuronqa.checks.ended import ended
from neuronqa.checks.ending import load_kind
from neuronqa.checks.finding import finding
from neuronqa.checks.seen import Seen
from neuronqa.domain.finding import Finding
from neuronqa.domain.outcome import Check, Kind

ANSWERS: Final = Check.LOAD


def judge(seen: Seen) -> Finding:
    if seen.stopped is Check.LOAD:
        return ended(Check.LOAD, load_kind(seen.end), seen.end, seen.left)
    return finding(Check.LOAD, Kind.LOAD_PASS, "device loaded, model and inputs moved")
