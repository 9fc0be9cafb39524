"""Runs one target up the ladder: a job for each variant, until the model itself turns out to be unfit."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Final, Self

from neuronqa.checkup.blame import blocker, operator_of, placed
from neuronqa.checkup.target import Target
from neuronqa.checkup.value import Blocker, Checkup, Tax
from neuronqa.device.plantable import unguarded
from neuronqa.device.prepare import prepare
from neuronqa.domain.build import BuildOrder, Prepared
from neuronqa.domain.case import Variant
from neuronqa.domain.catalog import ListingStatus
from neuronqa.domain.finding import Finding
from neuronqa.domain.job import AttemptResult, Job, JobResult, Ticket
from neuronqa.domain.ladder import Evidence, entry_state
from neuronqa.domain.outcome import Check, Kind, Outcome, Standing
from neuronqa.domain.policy import Policy
from neuronqa.domain.workload import Workload
from neuronqa.errors import BadInput
from neuronqa.sweep.controls import SIMULATED
from neuronqa.worker.actor import CaseActor
from neuronqa.worker.sizing import size

Tell = Callable[[str], None]
"""Told in a few words what happens next."""

TOO_LARGE: Final = frozenset(
    {
        Kind.BUILD_TOO_LARGE,
        Kind.BUILD_TIMEOUT,
        Kind.BUILD_OOM,
        Kind.REFERENCE_TIMEOUT,
        Kind.REFERENCE_OOM,
    }
)
"""Why a model is not checked at its own size but as a shrunken twin."""


@dataclass(frozen=True)
class _Run:
    """One workload in every variant that was tried."""

    workload: Workload
    results: tuple[JobResult, ...]

    @property
    def findings(self) -> dict[tuple[Variant, Check], Finding]:
        """Of the attempts that count, and of the references behind them."""
        found: dict[tuple[Variant, Check], Finding] = {}
        for result in self.results:
            for attempt in self.attempts(result):
                for reference in result.references:
                    if (reference.variant.dtype, reference.variant.phase) == (
                        attempt.variant.dtype,
                        attempt.variant.phase,
                    ):
                        found |= {(attempt.variant, one.check): one for one in reference.findings}
                found |= {(attempt.variant, one.check): one for one in attempt.findings}
        return found

    @staticmethod
    def attempts(result: JobResult) -> list[AttemptResult]:
        return [attempt for attempt in result.attempts if not attempt.probe_of]

    @property
    def too_large(self) -> Finding | None:
        references = (one for result in self.results for reference in result.references for one in reference.findings)
        return next((one for one in references if one.outcome.kind in TOO_LARGE), None)

    @property
    def unfit(self) -> bool:
        """Is the model itself at fault, so that further variants would say the same?"""
        references = [reference for result in self.results for reference in result.references]
        return any(one.outcome.standing is Standing.FAIL for ref in references for one in ref.findings)

    @property
    def lost(self) -> str:
        return next((result.lost for result in self.results if result.lost), "")


class Examiner:
    """A prepared device and one worker, for as many targets as there are. To be used on the main thread."""

    def __init__(self, device: str = "neuron", profile: str = "trn2-sdk2.33", overlays: Sequence[str] = ()) -> None:
        """Raises BadInput for an unknown device or profile, EnvironmentFault where none can be prepared."""
        order = BuildOrder(device=device, profile=profile if device == "neuron" else "", overlays=tuple(overlays))
        self._prepared: Prepared = prepare(order)
        self._actor = CaseActor(device)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def ready(self) -> None:
        """Start what takes long to start. Raises EnvironmentFault."""
        self._actor.ready()

    def forget(self) -> None:
        """Keep nothing of earlier examinations: a file that a target imports has changed."""
        self._actor.forget()

    def close(self) -> None:
        self._actor.close()

    def examine(self, target: Target, policy: Policy, tell: Tell = lambda _: None) -> Checkup:
        """Check `target`: at its own size, and where that is too large, as a shrunken twin."""
        started = time.monotonic()
        with ThreadPoolExecutor(max_workers=1) as beside:
            sizing = beside.submit(_fit, target, self._prepared.order)
            checkup = self._examine(target, policy, tell)
            if not sizing.done():
                tell("sizing the model")
            return replace(checkup, fit=sizing.result(), seconds=time.monotonic() - started)

    def _examine(self, target: Target, policy: Policy, tell: Tell) -> Checkup:
        shrunk = ""
        for last, workload in _with_last(target.workloads):
            tell("reference on the CPU")
            run = self._climb(workload, policy, tell)
            if run.too_large is None or last:
                break
            shrunk = str(run.too_large.evidence.get("words", ""))
        else:
            raise AssertionError("a target has a workload")
        if len(target.workloads) == 1 and not target.own:
            shrunk = "asked for"
        checkup = self._judged(target, policy, run, tell)
        return replace(checkup, shrunk=shrunk)

    def _climb(self, workload: Workload, policy: Policy, tell: Tell) -> _Run:
        run = _Run(workload, ())
        for variant in policy.variants:
            tell(str(variant))
            (result,) = self._actor.run([self._job(workload, variant, policy)])
            run = _Run(workload, (*run.results, result))
            if run.unfit or run.lost:
                break
        return run

    def _job(self, workload: Workload, variant: Variant, policy: Policy) -> Job:
        ticket = Ticket(id=secrets.token_hex(8), variant=variant, order=self._prepared.order)
        return Job(workload=workload, tickets=(ticket,), thresholds=policy.thresholds, limits=policy.limits)

    def _judged(self, target: Target, policy: Policy, run: _Run, tell: Tell) -> Checkup:
        findings = run.findings
        outcomes = {key: one.outcome for key, one in findings.items()}
        state = entry_state(
            policy,
            ListingStatus.ELIGIBLE.outcome(),
            outcomes,
            Evidence.EXECUTED,
            Outcome(Kind.NOT_RUN_BLOCKED, "reference"),
        )
        references = [reference for result in run.results for reference in result.references]
        return Checkup(
            name=target.name,
            device=self._prepared.order.device,
            profile=self._prepared.order.profile,
            policy=policy.name,
            own=target.own,
            parameters=max((reference.parameters for reference in references), default=0),
            rungs=() if run.lost else state.rungs,
            blockers=self._blockers(target, policy, run, findings, tell),
            taxes=tuple(tax for result in run.results for attempt in run.attempts(result) for tax in _tax(attempt)),
            not_guarded=unguarded(self._prepared.order.device),
            lost=run.lost,
            versions=run.results[-1].versions,
        )

    def _blockers(
        self,
        target: Target,
        policy: Policy,
        run: _Run,
        findings: Mapping[tuple[Variant, Check], Finding],
        tell: Tell,
    ) -> tuple[Blocker, ...]:
        asked = [pair for rung in policy.rungs for pair in policy.asks(rung)]
        failed = [(pair[0], findings[pair]) for pair in asked if pair in findings]
        failed = [(variant, one) for variant, one in failed if one.outcome.standing is Standing.FAIL]
        places: Mapping[str, Any] = {}
        if any(operator_of(one) for _, one in failed) and not run.unfit:
            tell("looking for the lines to blame")
            places = self._actor.places(self._job(run.workload, failed[0][0], policy))
        return placed(tuple(blocker(variant, one, places, target.source) for variant, one in failed))


def _fit(target: Target, order: BuildOrder) -> dict[str, Any]:
    """Would the model fit at its full size? Asked of configs, and of the device whose memory is known."""
    if not target.config or order.device != SIMULATED:
        return {}
    try:
        return size(target.config, order.profile)
    except BadInput:
        return {}


def _with_last(workloads: Sequence[Workload]) -> list[tuple[bool, Workload]]:
    return [(number == len(workloads), workload) for number, workload in enumerate(workloads, 1)]


def _tax(attempt: AttemptResult) -> list[Tax]:
    if attempt.graph is None:
        return []
    ran = next((one for one in attempt.findings if one.check is Check.RUN), None)
    seconds = ran.evidence.get("seconds", {}) if ran else {}
    return [
        Tax(
            variant=attempt.variant,
            graphs=attempt.graph.graphs,
            recompiled=len(attempt.graph.recompiles),
            cache_hits=attempt.graph.cache_hits,
            cache_misses=attempt.graph.cache_misses,
            first_step_s=float(seconds.get("first_step", 0.0)),
            steady_step_s=float(seconds.get("steady_step", 0.0)),
        )
    ]
