"""Are ties, identities, places, dtypes and values what they were before the move?"""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from neuronqa.checks.finding import blocked, finding, unobservable
from neuronqa.checks.seen import Seen
from neuronqa.domain.finding import Finding
from neuronqa.domain.observation import Progress
from neuronqa.domain.outcome import Check, Kind, Outcome

ANSWERS: Final = Check.STATE
_FACTS: Final = (
    ("left_behind", Kind.STATE_LEFT_BEHIND, "stayed off the device"),
    ("untied", Kind.STATE_UNTIED, "are no longer the tensor they were tied to"),
    (
        "replaced",
        Kind.STATE_REPLACED,
        "are other objects than before the move, so an optimizer made earlier loses them",
    ),
    ("wrong_dtype", Kind.STATE_DTYPE, "changed dtype"),
    ("changed", Kind.STATE_CHANGED, "came back from the device with other values, or left the state dict"),
)
"""Worst first: what is left behind or untied computes something else; the rest may only surprise."""


def judge(seen: Seen) -> Finding:
    """A fact that was seen counts even if the run stopped later; a pass needs the look after the first step too."""
    observation, stopped = seen.device, seen.stopped
    if observation is None or (observation.state is None and stopped is not None):
        return blocked(Check.STATE, stopped or Check.LOAD)
    if Check.STATE.value in observation.not_observable or observation.state is None:
        return unobservable(Check.STATE, "the device cannot show the state of the module")
    facts = asdict(observation.state)
    broken = [(facts[name], kind, words) for name, kind, words in _FACTS if facts[name]]
    if broken:
        names, kind, words = broken[0]
        return finding(
            Check.STATE,
            kind,
            f"{len(names)} tensors {words}: {', '.join(names[:5])}",
            others=[Outcome(other) for _, other, _ in broken],
            measure=float(len(names)),
            **facts,
        )
    if stopped is not None or observation.reached is not Progress.DONE:
        return blocked(Check.STATE, stopped or Check.RUN)
    return finding(Check.STATE, Kind.STATE_PASS, "ties, identities, places, dtypes and values survived move and step")
