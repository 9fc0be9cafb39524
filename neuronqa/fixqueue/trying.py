"""The inner loop of whoever writes a kernel: what verification will look at, on what may be seen, at no cost.

The rules, the loading, the fuzz with a public seed and the visible cases. Passing is no verdict: hidden cases, another
seed and planted faults come after a submission.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from neuronqa.domain.build import BuildOrder
from neuronqa.domain.policy import Policy
from neuronqa.fixqueue import policy as rules
from neuronqa.fixqueue.effect import Ran, effect, shown
from neuronqa.fixqueue.fuzz import PUBLIC_SEED, Fuzzed, fuzz, loads
from neuronqa.fixqueue.reason import Reason
from neuronqa.fixqueue.sandbox import Sandbox
from neuronqa.fixqueue.verdict import CaseRef, Target
from neuronqa.fixqueue.verification import OVERLAY, run_case

MEMBERS: Final = 3
FUZZ_S: Final = 6.0
SHAPES: Final = 3
DEADLINE_S: Final = 20.0


@dataclass(frozen=True, kw_only=True)
class TriedCase:
    """A visible case with the overlay."""

    name: str
    reason: Reason | None
    """None: what should be gone is gone, and nothing else is worse."""
    breaks: tuple[str, ...] = ()
    """Failing outcomes that were not there without it."""

    def to_json(self) -> dict[str, Any]:
        said = {"reason": self.reason.value, "text": self.reason.text} if self.reason else {}
        return {"case": self.name, "fixed": self.reason is None, **said, "breaks": list(self.breaks)}


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What was seen, in the order of the stages. Without a reason nothing was wrong."""

    reason: Reason | None = None
    stage: str = ""
    hints: tuple[str, ...] = ()
    fuzzed: Fuzzed = field(default_factory=Fuzzed)
    cases: tuple[TriedCase, ...] = ()
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        said = {"reason": self.reason.value, "text": self.reason.text} if self.reason else {}
        return {
            "fine": self.reason is None,
            "stage": self.stage,
            **said,
            "hints": list(self.hints),
            "fuzz": {"calls": self.fuzzed.calls, "wrong": dict(self.fuzzed.wrong), "example": self.fuzzed.example},
            "cases": [one.to_json() for one in self.cases],
            "seconds": round(self.seconds, 1),
        }


def try_overlay(
    text: str,
    target: Target | None,
    *,
    base: BuildOrder,
    policy: Policy,
    folder: Path,
    sandbox: Sandbox,
) -> Tried:
    """Look at an overlay. `base`: a prepared order; of `target` only what is visible is used. On the main thread."""
    began = time.monotonic()
    found = rules.objections(text, target.ops if target is not None else ())
    if found:
        return Tried(reason=found[0].reason, stage="S0", hints=tuple(map(str, found[:10])))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / OVERLAY
    path.write_text(text, "utf-8")
    order = replace(base, overlays=(*base.overlays, str(path)))
    limits = replace(policy.limits, deadline_s=min(DEADLINE_S, policy.limits.deadline_s), probes=0)
    reason, words = loads(sandbox, order, limits)
    if reason is not None:
        return Tried(reason=reason, stage="S1", hints=(words,), seconds=time.monotonic() - began)
    ops = rules.declared(text)
    fuzzed = fuzz(sandbox, ops, order, seed=PUBLIC_SEED, limits=limits, seconds=FUZZ_S, shapes=SHAPES)
    visible = target.members[:MEMBERS] if target is not None else ()
    cases = tuple(_tried(sandbox, case, base, order, policy) for case in visible)
    wrong = [one.reason for one in cases if one.reason is not None]
    reason = wrong[0] if wrong else fuzzed.reason
    stage = "S3" if wrong else "S5" if fuzzed.reason else ""
    return Tried(reason=reason, stage=stage, fuzzed=fuzzed, cases=cases, seconds=time.monotonic() - began)


def _tried(sandbox: Sandbox, case: CaseRef, base: BuildOrder, order: BuildOrder, policy: Policy) -> TriedCase:
    limits = replace(policy.limits, deadline_s=min(DEADLINE_S, policy.limits.deadline_s))
    before: Ran = run_case(sandbox, case, base, policy, limits)
    after = run_case(sandbox, case, order, policy, limits)
    name = case.name or f"{case.workload.hash[:12]} {case.variant}"
    if before.harness or after.harness:
        return TriedCase(name=name, reason=Reason.HARNESS)
    fresh = tuple(sorted(set(after.failing) - set(before.failing)))
    return TriedCase(name=name, reason=effect(before, after, shown(before, case.outcomes)), breaks=fresh)
