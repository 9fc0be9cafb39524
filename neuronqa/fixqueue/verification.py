"""Is a submission what it says it is? Eight stages in order; the first that fails decides.

Nothing of a submission runs outside the sandbox, and the side that says what is right never loads it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from neuronqa.domain.build import BuildOrder
from neuronqa.domain.job import Job, Ticket
from neuronqa.domain.policy import Limits, Policy
from neuronqa.fixqueue import draw, patch
from neuronqa.fixqueue import policy as rules
from neuronqa.fixqueue.effect import Ran, effect, shown
from neuronqa.fixqueue.fuzz import Fuzzed, fuzz, loads
from neuronqa.fixqueue.patch import PatchRefused
from neuronqa.fixqueue.reason import Reason
from neuronqa.fixqueue.sandbox import NotEnforced, Sandbox
from neuronqa.fixqueue.verdict import CaseRef, Conclusion, Form, Stage, Submission, Target, Verdict
from neuronqa.sweep.agenda import new_ticket
from neuronqa.sweep.controls import Control, load_controls

SIBLINGS: Final = 9
"""Enough to catch, at 95 %, a submission that is right for 7 of 10 (n = ln 0.05 / ln 0.7)."""
PASSING: Final = 9
CONTROLS: Final = 4
FUZZ_S: Final = 15.0
BUDGET_S: Final = 600.0
OVERLAY: Final = "submitted.py"
_PATIENCE: Final = 6.0
"""Times the wall time of the case without the submission, beyond :data:`_GRACE_S`."""
_GRACE_S: Final = 8.0
_DOUBT: Final = (Reason.NOT_COMPARABLE, Reason.HARNESS, Reason.NO_TIME, Reason.DOES_NOT_REPRODUCE, Reason.NOT_ENFORCED)
"""Reasons that say nothing about the submission."""


class _Decided(Exception):
    """A stage failed."""

    def __init__(self, reason: Reason, *, hint: str = "", note: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.note = note


def verify(
    submission: Submission,
    target: Target,
    *,
    base: BuildOrder,
    policy: Policy,
    seed: bytes,
    folder: Path,
    budget_s: float = BUDGET_S,
    report: Callable[[Stage], None] | None = None,
    sandbox: Sandbox | None = None,
) -> Verdict:
    """Take a submission through every stage. To be called on the main thread.

    `base`: the prepared order of the device as it is; `policy`: whose thresholds and limits cases run under; `seed`: a
    secret; `folder`: for the submission's files while it is verified; `sandbox`: a running one, to be used again.
    """
    run = Verification(submission, target, base, policy, seed, folder, time.monotonic() + budget_s)
    try:
        for stage in Stage:
            if report is not None:
                report(stage)
            run.enter(stage, sandbox)
    except _Decided as decided:
        return run.verdict(decided)
    except NotEnforced as lacking:
        return run.verdict(_Decided(Reason.NOT_ENFORCED, note=str(lacking)))
    finally:
        run.close()
    return run.verdict(None)


@dataclass
class Verification:
    """One submission on its way through the stages."""

    submission: Submission
    target: Target
    base: BuildOrder
    policy: Policy
    secret: bytes
    folder: Path
    ends: float
    stage: Stage = Stage.POLICY
    measured: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._open = ExitStack()
        self._sandbox: Sandbox | None = None
        self._order = self.base
        self._ops: dict[str, tuple[str, ...]] = {}
        self._before: dict[tuple[str, str], Ran] = {}

    def enter(self, stage: Stage, sandbox: Sandbox | None) -> None:
        """Raises _Decided for a submission that does not pass the stage."""
        self.stage = stage
        began = time.monotonic()
        if stage is Stage.LOADS:
            self._sandbox = sandbox or self._open.enter_context(Sandbox(self.base.device))
        steps: Mapping[Stage, Callable[[], None]] = {
            Stage.POLICY: self._read,
            Stage.LOADS: self._load,
            Stage.BASE: self._fail_on_base,
            Stage.MEMBERS: lambda: self._fix(self.target.members),
            Stage.SIBLINGS: lambda: self._fix(self._drawn(self.target.siblings, SIBLINGS)),
            Stage.REGRESSIONS: self._regress,
            Stage.CONTROLS: self._plant,
            Stage.PERSON: self._ask,
        }
        try:
            steps[stage]()
        finally:
            self.measured[stage.value] = {
                **self.measured.get(stage.value, {}),
                "seconds": round(time.monotonic() - began, 3),
            }

    def close(self) -> None:
        self._open.close()

    def verdict(self, decided: _Decided | None) -> Verdict:
        if decided is None:
            return Verdict(conclusion=Conclusion.ACCEPTED, stage=self.stage, measured=self.measured)
        conclusion = Conclusion.REJECTED
        if decided.reason is Reason.PERSON_ASKED:
            conclusion = Conclusion.NEEDS_HUMAN
        elif decided.reason in _DOUBT:
            conclusion = Conclusion.INCONCLUSIVE
        return Verdict(
            conclusion=conclusion,
            stage=self.stage,
            reason=decided.reason,
            hint=decided.hint,
            note=decided.note,
            measured=self.measured,
        )

    # S0

    def _read(self) -> None:
        if self.submission.form is Form.BUILD:
            return
        files = self._files()
        for name, text in files.items():
            known = self.submission.base.get(name, "")
            own = (*self.target.ops, *(rules.declared(known) if known else ()))
            found = rules.objections(text, own if self.target.ops else ())
            if found:
                raise _Decided(found[0].reason, hint="; ".join(map(str, found[:5])))
            self._ops |= rules.declared(text)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept = [path for path in self.base.overlays if Path(path).name not in files]
        for name, text in files.items():
            (self.folder / name).write_text(text, "utf-8")
        self._order = replace(self.base, overlays=(*kept, *(str(self.folder / name) for name in files)))

    def _files(self) -> dict[str, str]:
        if self.submission.form is Form.OVERLAY:
            return {OVERLAY: self.submission.content}
        try:
            return patch.apply(self.submission.content, self.submission.base)
        except PatchRefused as refused:
            raise _Decided(refused.reason, hint=str(refused)) from refused

    # S1

    def _load(self) -> None:
        if self.submission.form is Form.BUILD:
            self.stage = Stage.PERSON
            raise _Decided(Reason.PERSON_ASKED, note="a build runs outside of any overlay's rules")
        reason, words = loads(self._box, self._order, self._limits())
        if reason is not None:
            raise _Decided(reason, hint=words)

    # S2 to S5: cases

    def _fail_on_base(self) -> None:
        failed = [case for case in self.target.members if shown(self._on_base(case), case.outcomes)]
        self.measured[self.stage.value] = {"members": len(self.target.members), "failed": len(failed)}
        if not failed:
            raise _Decided(Reason.DOES_NOT_REPRODUCE)

    def _fix(self, cases: Sequence[CaseRef]) -> None:
        self.measured[self.stage.value] = {"cases": len(cases)}
        for case in cases:
            before = self._on_base(case)
            reason = effect(before, self._with_it(case), shown(before, case.outcomes))
            if reason is not None:
                raise _Decided(reason, note=_name(case))

    def _regress(self) -> None:
        self._fuzz()
        cases = self._drawn(self.target.passing, PASSING)
        self.measured[self.stage.value] |= {"cases": len(cases)}
        for case in cases:
            reason = effect(self._on_base(case), self._with_it(case))
            if reason is not None:
                raise _Decided(reason, note=_name(case))

    def _fuzz(self) -> None:
        number = draw.seed(self.secret, self.submission.sha256, "fuzz")
        found = fuzz(self._box, self._ops, self._order, seed=number, limits=self._limits(), seconds=FUZZ_S)
        self.measured[self.stage.value] = _fuzz_figures(found)
        if found.reason is not None:
            raise _Decided(found.reason, note=found.example)

    def _on_base(self, case: CaseRef) -> Ran:
        """How the case runs without the submission; once."""
        key = (case.workload.hash, str(case.variant))
        if key not in self._before:
            self._before[key] = self._ran(case, self.base, self.policy.limits)
        return self._before[key]

    def _with_it(self, case: CaseRef) -> Ran:
        before = self._on_base(case)
        patience = min(self.policy.limits.deadline_s, _PATIENCE * before.exit.wall_s + _GRACE_S)
        return self._ran(case, self._order, replace(self.policy.limits, deadline_s=patience))

    def _ran(self, case: CaseRef, order: BuildOrder, limits: Limits) -> Ran:
        """Raises _Decided where nothing can be said of it."""
        left_s = self.ends - time.monotonic()
        if left_s <= 0:
            raise _Decided(Reason.NO_TIME)
        ran = run_case(self._box, case, order, self.policy, limits)
        if ran.harness:
            raise _Decided(Reason.HARNESS, note=f"{_name(case)}: {ran.harness}")
        return ran

    # S6, S7

    def _plant(self) -> None:
        controls = [one for one in load_controls(self.policy, self.base.device) if one.workload.spec.deadline_s is None]  # type: ignore[union-attr]
        chosen = self._drawn(controls, CONTROLS)
        self.measured[self.stage.value] = {"controls": len(chosen)}
        for control in chosen:
            if not self._caught(control, self._order) and self._caught(control, self.base):
                raise _Decided(Reason.CONTROL_MISSED, note=control.name)

    def _caught(self, control: Control, order: BuildOrder) -> bool:
        case = CaseRef(workload=control.workload, variant=control.variant, name=control.name)
        ran = self._ran(case, replace(order, fault=control.fault), replace(self.policy.limits, probes=0))
        return control.judge(ran.findings).caught

    def _ask(self) -> None:
        if self.target.asks_person:
            raise _Decided(Reason.PERSON_ASKED)

    @property
    def _box(self) -> Sandbox:
        assert self._sandbox is not None
        return self._sandbox

    def _limits(self) -> Limits:
        return replace(self.policy.limits, deadline_s=min(self.policy.limits.deadline_s, 2 * FUZZ_S), probes=0)

    def _drawn(self, pool: Sequence[Any], count: int) -> list[Any]:
        return draw.drawn(pool, count, self.secret, self.submission.sha256, self.stage.value)


def run_case(sandbox: Sandbox, case: CaseRef, order: BuildOrder, policy: Policy, limits: Limits) -> Ran:
    """Run one case once, on `order`."""
    ticket = Ticket(id=new_ticket(), variant=case.variant, order=order)
    limits = replace(limits, probes=0)
    result = sandbox.cases(Job(workload=case.workload, tickets=(ticket,), thresholds=policy.thresholds, limits=limits))
    attempts = [one for one in result.attempts if not one.probe_of]
    if result.lost or not attempts:
        from neuronqa.domain.observation import Exit, Progress

        return Ran(findings=(), exit=Exit(done=False, progress=Progress.STARTED), lost=result.lost or "no attempt")
    before = tuple(finding for one in result.references for finding in one.findings)
    one = attempts[0]
    return Ran(findings=(*before, *one.findings), exit=one.exit, graph=one.graph)


def _fuzz_figures(found: Fuzzed) -> dict[str, Any]:
    return {"calls": found.calls, "wrong": dict(found.wrong)}


def _name(case: CaseRef) -> str:
    return case.name or f"{case.workload.hash[:12]} {case.variant}"
