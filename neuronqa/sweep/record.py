"""A job's result as attempts to write: pure, so that what a lost or blocked case becomes is a table in a test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from neuronqa.db.rows import AttemptRecord
from neuronqa.domain.case import AttemptKind, Case, Mode, Variant
from neuronqa.domain.finding import Finding
from neuronqa.domain.job import AttemptResult, JobResult, ReferenceResult, Ticket
from neuronqa.domain.observation import Exit, Progress
from neuronqa.domain.outcome import Check, Kind, Outcome, Rung, Standing
from neuronqa.domain.policy import applicable
from neuronqa.sweep.schedule import Assignment

SILENT: Final = Outcome(Kind.INFRA_HARNESS, "no report")
SILENCE: Final = "The worker finished the job without a word on this."


def records(assignment: Assignment, result: JobResult, device: str) -> list[AttemptRecord]:
    """Every attempt of a finished job. A ticket nobody reported on is `infra:harness`, never silently absent."""
    references = {r.variant: r for r in result.references}
    attempts = [a for a in result.attempts if (a.probe_of or a.ticket) in assignment.kinds]
    reported = {attempt.ticket for attempt in attempts if not attempt.probe_of}
    attempts += [_silence(ticket) for ticket in assignment.job.tickets if ticket.id not in reported]
    charged: set[Variant] = set()
    out = []
    for attempt in attempts:
        key = replace(attempt.variant, mode=Mode.EAGER)
        reference = references.get(key)
        extra = reference.exit.cpu_s if reference is not None and key not in charged else 0.0
        charged.add(key)
        out.append(_record(assignment, result, attempt, reference, extra, device))
    return out


def lost_records(assignment: Assignment, why: str, device: str) -> list[AttemptRecord]:
    """What a job becomes whose workers were lost once too often: every check is `infra:lost`."""
    lost = Outcome.of(Kind.INFRA_LOST, why)
    return [
        AttemptRecord(
            ticket=ticket.id,
            case=_case(assignment, ticket.variant, device),
            kind=assignment.kinds[ticket.id],
            findings=_answered(ticket.variant, (), lost, f"The worker was lost: {why}"),
            started=0.0,
            wall_s=0.0,
            cpu_s=0.0,
            peak_rss=0,
        )
        for ticket in assignment.job.tickets
    ]


def _record(
    assignment: Assignment,
    result: JobResult,
    attempt: AttemptResult,
    reference: ReferenceResult | None,
    extra_cpu: float,
    device: str,
) -> AttemptRecord:
    before = reference.findings if reference is not None else ()
    kind = AttemptKind.PROBE if attempt.probe_of else assignment.kinds[attempt.ticket]
    found = (*before, *attempt.findings)
    return AttemptRecord(
        ticket=attempt.ticket,
        case=_case(assignment, attempt.variant, device),
        kind=kind,
        findings=attempt.findings if attempt.probe_of else _answered(attempt.variant, found, SILENT, SILENCE),
        started=attempt.started,
        wall_s=attempt.exit.wall_s,
        cpu_s=attempt.exit.cpu_s + extra_cpu,
        peak_rss=attempt.exit.peak_rss,
        node=result.node,
        worker=result.worker,
        probe_of=attempt.probe_of,
        ops_complete=attempt.ops_complete,
        record=_body(attempt, reference),
    )


def _silence(ticket: Ticket) -> AttemptResult:
    return AttemptResult(
        ticket=ticket.id, variant=ticket.variant, findings=(), exit=Exit(done=False, progress=Progress.STARTED)
    )


def _answered(variant: Variant, found: Sequence[Finding], otherwise: Outcome, words: str) -> list[Finding]:
    """One finding for every check that applies, so that no silence can be taken for a case that did not run.

    Where a check of the reference failed, the checks nobody answered are blocked by it; else they are `otherwise`.
    """
    answers: dict[Check, Finding] = {}
    for finding in found:
        answers.setdefault(finding.check, finding)
    failed = [f.check for f in answers.values() if f.check.rung is Rung.BUILDS and f.outcome.standing is Standing.FAIL]
    if failed:
        otherwise, words = Outcome(Kind.NOT_RUN_BLOCKED, failed[0].value), f"not reached: {failed[0].value} failed"
    for check in applicable(variant):
        if check not in answers:
            answers[check] = Finding(check=check, outcome=otherwise, evidence={"words": words})
    return list(answers.values())


def _case(assignment: Assignment, variant: Variant, device: str) -> Case:
    return Case(workload=assignment.job.workload.hash, device=device, variant=variant)


def _body(attempt: AttemptResult, reference: ReferenceResult | None) -> dict[str, Any]:
    """What goes into the record. It is written, not changed, so that nothing needs to be copied."""
    body: dict[str, Any] = {
        "exit": vars(attempt.exit),
        "ops": [vars(op) for op in attempt.ops],
        "graph": asdict(attempt.graph) if attempt.graph is not None else None,
        "curve": vars(attempt.curve),
        "reference_curve": vars(attempt.reference_curve),
        "envelope": vars(attempt.envelope),
        "forced_cpu": attempt.forced_cpu,
        "memory_peak": attempt.memory_peak,
    }
    if reference is not None:
        body["reference"] = {
            "exit": vars(reference.exit),
            "parameters": reference.parameters,
            "partial": reference.partial,
            "repairs": reference.repairs,
        }
    return body
