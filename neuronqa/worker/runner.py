"""One job: a reference per dtype and phase, an attempt per ticket, and probes behind those that crash."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from neuronqa.domain.case import Mode, Variant
from neuronqa.domain.finding import Finding
from neuronqa.domain.job import AttemptResult, Job, ReferenceResult, Ticket
from neuronqa.domain.observation import OBSERVATION_FILE, Curve, Envelope, Exit, Observation, Progress
from neuronqa.domain.outcome import Check, Kind, Outcome, Stage, Standing
from neuronqa.domain.policy import Limits, Thresholds, applicable
from neuronqa.domain.workload import HfSpec, ModuleSpec
from neuronqa.errors import InvariantBroken
from neuronqa.worker import bundle as bundles
from neuronqa.worker import exchange, folders
from neuronqa.worker.judging import Judge, JudgeFailed
from neuronqa.worker.supervisor import Supervisor

OF_THE_REFERENCE: Final = (Check.BUILD, Check.INPUTS, Check.REFERENCE)
_OBSERVATION_LIMIT: Final = 64 << 20
_SEARCHING: Final = 0.6
"""Share of the time left in which a search compares; it needs the rest to load before and to finish after."""
_LEAST_S: Final = 1.0
"""A probe with less time left than this is not begun."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reference:
    """A reference, where its files are, and their hash."""

    result: ReferenceResult
    folder: Path
    digest: str
    observation: Observation | None

    @property
    def fit(self) -> bool:
        """May a device be compared with it?"""
        return any(one.outcome.kind is Kind.REFERENCE_PASS for one in self.result.findings)


class JobRunner:
    """Runs one job in a folder of its own."""

    def __init__(self, supervisor: Supervisor, judge: Judge, job: Job, folder: Path) -> None:
        self._supervisor = supervisor
        self._judge = judge
        self._job = job
        self._folder = folder
        self._limits = limits_of(job)
        self._numbers = itertools.count(1)
        self._known = ""
        """The folder of the last reference made."""

    def reference(self, variant: Variant, out: Path) -> Reference:
        """Make the reference for a dtype and phase in `out`, let nobody change it any more, and judge it."""
        left = self._play("reference", variant, out, self._limits, {"known": self._known})
        digest = folders.freeze(out)
        self._known = str(out)
        findings = self._findings(OF_THE_REFERENCE, left, lambda: self._judge.reference(out, left))
        observation = observed(out)
        result = ReferenceResult(
            variant=variant,
            findings=findings,
            exit=left,
            parameters=observation.parameters if observation else 0,
            partial=observation.partial if observation else (),
            repairs=observation.repairs if observation else (),
        )
        return Reference(result, out, digest, observation)

    def attempts(self, ticket: Ticket, reference: Reference) -> Iterator[AttemptResult]:
        """The attempt a ticket asks for and, as long as it crashes in an operator, probes with that one on the CPU."""
        if not reference.fit:
            yield _blocked(ticket)
            return
        result = self._attempt(ticket, reference, self._limits)
        yield result
        left_s = self._limits.deadline_s - result.exit.wall_s
        order = ticket.order
        for number in range(1, self._limits.probes + 1):
            op = result.exit.last_op
            if not crashed(result.exit) or not op or op in order.forced_cpu or left_s < _LEAST_S:
                return
            order = replace(order, forced_cpu=(*order.forced_cpu, op))
            probe = replace(ticket, id=f"{ticket.id}.{number}", order=order)
            result = self._attempt(probe, reference, replace(self._limits, deadline_s=left_s), probe_of=ticket.id)
            yield result
            left_s -= result.exit.wall_s

    def places(self, ticket: Ticket, reference: Reference) -> dict[str, Any]:
        """Where in the source each operator is called (:mod:`neuronqa.worker.location`), in eager mode."""
        out = self._folder / f"location-{next(self._numbers)}"
        variant = replace(ticket.variant, mode=Mode.EAGER)
        order = {"order": ticket.order.to_json(), "reference": str(reference.folder)}
        self._play("location", variant, out, self._limits, order)
        return exchange.read_places(out)

    def _attempt(self, ticket: Ticket, reference: Reference, limits: Limits, probe_of: str = "") -> AttemptResult:
        out = self._folder / f"device-{next(self._numbers)}"
        started = time.time()
        order = {"order": ticket.order.to_json(), "reference": str(reference.folder)}
        left = self._play("device", ticket.variant, out, limits, order)
        if folders.digest(reference.folder) != reference.digest:
            raise InvariantBroken("a reference was changed while a device ran", where=str(reference.folder))
        checks = device_checks(ticket.variant)
        findings = self._findings(checks, left, lambda: self._judged(ticket, reference, out, left))
        left_s = limits.deadline_s - left.wall_s
        if doubtful(ticket.variant, findings) and left_s >= _LEAST_S:
            rest = replace(limits, deadline_s=left_s)
            findings, searching = self._blame(ticket, reference, out, left, findings, rest)
            left = replace(left, cpu_s=left.cpu_s + searching)
        seen = observed(out) or Observation(role="device", reached=left.progress)
        folders.remove(out)
        return AttemptResult(
            ticket=ticket.id,
            variant=ticket.variant,
            findings=findings,
            exit=left,
            probe_of=probe_of,
            forced_cpu=ticket.order.forced_cpu,
            ops=seen.ops,
            ops_complete=seen.ops_complete,
            graph=seen.graph,
            curve=seen.curve,
            reference_curve=reference.observation.curve if reference.observation else Curve(),
            envelope=reference.observation.envelope if reference.observation else Envelope(),
            started=started,
            memory_peak=seen.memory_peak,
        )

    def _blame(
        self,
        ticket: Ticket,
        reference: Reference,
        device: Path,
        left: Exit,
        findings: tuple[Finding, ...],
        limits: Limits,
    ) -> tuple[tuple[Finding, ...], float]:
        """Search for the operator that gives wrong numbers, and judge again with what was found.

        Returns the findings, old or new, and the CPU seconds of the search.
        """
        out = self._folder / f"search-{next(self._numbers)}"
        thresholds = self._job.thresholds
        more = {
            "order": ticket.order.to_json(),
            "reference": str(reference.folder),
            "thresholds": asdict(thresholds),
            "seconds": limits.deadline_s * _SEARCHING,
            "steps": steps_in_doubt(findings, thresholds),
        }
        searched = self._play("deviation", ticket.variant, out, limits, more)
        try:
            if searched.done and not searched.fault:
                findings = self._judged(ticket, reference, device, left, out)
        except JudgeFailed as failed:
            log.warning("A search was not judged: %s.", failed, extra={"action": "judge_failed"})
        folders.remove(out)
        return findings, searched.cpu_s

    def _judged(
        self, ticket: Ticket, reference: Reference, device: Path, left: Exit, search: Path | None = None
    ) -> tuple[Finding, ...]:
        """Raises JudgeFailed."""
        bundle, variant = self._job.bundle, ticket.variant
        workload = self._job.workload.hash
        second = bundles.find(Path(bundle), workload, variant, reference.folder) if bundle else None
        return self._judge.device(
            reference.folder, device, left, variant, self._job.thresholds, search=search, second=second
        )

    def _play(
        self, role: str, variant: Variant, out: Path, limits: Limits, more: Mapping[str, Any] | None = None
    ) -> Exit:
        if variant.ranks > 1 and isinstance(self._job.workload.spec, HfSpec | ModuleSpec):
            # Its ranks would each do the same, and nothing of what lies between ranks would have been tried.
            return Exit(done=False, progress=Progress.STARTED, fault="a model runs on one rank; scripts run on several")
        request = {
            "workload": self._job.workload.to_json(),
            "variant": str(variant),
            "steps": self._job.thresholds.train_steps,
            "out": str(out),
            **(more or {}),
        }
        return self._supervisor.run(role, request, limits, variant.ranks)

    def _findings(
        self, checks: Sequence[Check], left: Exit, ask: Callable[[], tuple[Finding, ...]]
    ) -> tuple[Finding, ...]:
        """What the judge says; and where the harness failed, in the child or in the judge, that and nothing else."""
        if left.fault:
            return everywhere(checks, Outcome.of(Kind.INFRA_HARNESS, left.fault), left.stderr_tail)
        try:
            return ask()
        except JudgeFailed as failed:
            log.warning("A case was not judged: %s.", failed, extra={"action": "judge_failed"})
            return everywhere(checks, Outcome.of(Kind.INFRA_HARNESS, str(failed)), str(failed))


def limits_of(job: Job) -> Limits:
    """The policy's limits, or a module workload's own where they are tighter."""
    spec = job.workload.spec
    if not isinstance(spec, ModuleSpec):
        return job.limits
    return replace(
        job.limits,
        deadline_s=min(spec.deadline_s or job.limits.deadline_s, job.limits.deadline_s),
        memory_mb=min(spec.memory_mb or job.limits.memory_mb, job.limits.memory_mb),
    )


def doubtful(variant: Variant, findings: Sequence[Finding]) -> bool:
    """Did it run, but compute or train something else than the CPU, or nothing that could be told from noise?

    What has no power is looked at operator by operator in eager mode only: a compiler may be wrong between operators.
    """
    for one in findings:
        kind = one.outcome.kind
        if kind.stage in (Stage.PARITY, Stage.TRAIN) and one.outcome.standing is Standing.FAIL:
            return True
        if one.check is Check.PARITY and kind is Kind.INCONCLUSIVE_FLAKY:
            return True
        if one.check is Check.PARITY and kind is Kind.INCONCLUSIVE_NO_POWER and variant.mode is Mode.EAGER:
            return True
    return False


def steps_in_doubt(findings: Sequence[Finding], thresholds: Thresholds) -> int:
    """How many training steps a search has to look at: one where that one is wrong, all where a later one is."""
    trained = {one.check: one.outcome.standing for one in findings}
    later = trained.get(Check.TRAIN) is Standing.FAIL and trained.get(Check.PARITY) is not Standing.FAIL
    return thresholds.train_steps if later else 1


def crashed(left: Exit) -> bool:
    """Did the case end its own process? A hang, a killed one and a fault of ours are no crashes."""
    return not (left.done or left.timed_out or left.memory_exceeded or left.fault)


def device_checks(variant: Variant) -> tuple[Check, ...]:
    """The checks that a device child answers."""
    return tuple(check for check in applicable(variant) if check not in OF_THE_REFERENCE)


def everywhere(checks: Sequence[Check], outcome: Outcome, words: str) -> tuple[Finding, ...]:
    return tuple(Finding(check=check, outcome=outcome, evidence={"words": words}) for check in checks)


def observed(folder: Path) -> Observation | None:
    """What a child wrote, if it is readable: the judge says what it means if it is not."""
    try:
        for one in exchange.rank_folders(folder) or [folder]:
            if (one / OBSERVATION_FILE).stat().st_size > _OBSERVATION_LIMIT:
                return None
        return exchange.read_observation(folder)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _blocked(ticket: Ticket) -> AttemptResult:
    outcome = Outcome(Kind.NOT_RUN_BLOCKED, Check.REFERENCE.value)
    findings = everywhere(device_checks(ticket.variant), outcome, "not reached: there is no reference to compare with")
    left = Exit(done=False, progress=Progress.STARTED)
    return AttemptResult(ticket=ticket.id, variant=ticket.variant, findings=findings, exit=left, started=time.time())
