"""A job's result as attempts to write: pure, so that what a lost or blocked case becomes is a table in a test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from neuronqa.db.rows import AttemptRecord
from neuronqa.domain.case import AttemptKind, Case, Dtype, Phase, Variant
from neuronqa.domain.finding import Finding
from neuronqa.domain.identity import strict
from neuronqa.domain.job import AttemptResult, JobResult, ReferenceResult, Ticket
from neuronqa.domain.outcome import Check, Kind, Outcome, Rung
from neuronqa.domain.policy import applies
from neuronqa.sweep.schedule import Assignment


def records(assignment: Assignment, result: JobResult, device: str) -> list[AttemptRecord]:
    """Every attempt of a finished job. A ticket nobody reported on is `infra:harness`, never silently absent."""
    references = {(r.variant.dtype, r.variant.phase): r for r in result.references}
    charged: set[tuple[Dtype, Phase]] = set()
    out = []
    reported = {attempt.ticket for attempt in result.attempts if not attempt.probe_of}
    for attempt in result.attempts:
        key = (attempt.variant.dtype, attempt.variant.phase)
        reference = references.get(key)
        extra = reference.exit.cpu_s if reference is not None and key not in charged else 0.0
        charged.add(key)
        out.append(_record(assignment, result, attempt, reference, extra, device))
    silent = [ticket for ticket in assignment.job.tickets if ticket.id not in reported]
    return out + [_unreported(assignment, result, ticket, references, device) for ticket in silent]


def lost_records(assignment: Assignment, why: str, device: str) -> list[AttemptRecord]:
    """What a job becomes whose workers were lost once too often: every check is `infra:lost`."""
    outcome = Outcome.of(Kind.INFRA_LOST, why)
    return [
        AttemptRecord(
            ticket=ticket.id,
            case=_case(assignment, ticket.variant, device),
            kind=assignment.kinds[ticket.id],
            findings=_everywhere(ticket.variant, outcome, f"The worker was lost: {why}"),
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
    return AttemptRecord(
        ticket=attempt.ticket,
        case=_case(assignment, attempt.variant, device),
        kind=kind,
        findings=(*before, *attempt.findings) if kind is not AttemptKind.PROBE else attempt.findings,
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


def _unreported(
    assignment: Assignment,
    result: JobResult,
    ticket: Ticket,
    references: dict[tuple[Dtype, Phase], ReferenceResult],
    device: str,
) -> AttemptRecord:
    reference = references.get((ticket.variant.dtype, ticket.variant.phase))
    outcome = Outcome(Kind.INFRA_HARNESS, "no report")
    return AttemptRecord(
        ticket=ticket.id,
        case=_case(assignment, ticket.variant, device),
        kind=assignment.kinds[ticket.id],
        findings=_everywhere(ticket.variant, outcome, "The worker finished the job without a word on this case."),
        started=0.0,
        wall_s=0.0,
        cpu_s=reference.exit.cpu_s if reference is not None else 0.0,
        peak_rss=0,
        node=result.node,
        worker=result.worker,
    )


def _everywhere(variant: Variant, outcome: Outcome, words: str) -> Sequence[Finding]:
    return [
        Finding(check=check, outcome=outcome, evidence={"words": words})
        for check in Check
        if check.rung is not Rung.FITS and applies(check, variant)
    ]


def _case(assignment: Assignment, variant: Variant, device: str) -> Case:
    return Case(workload=assignment.job.workload.hash, device=device, variant=variant)


def _body(attempt: AttemptResult, reference: ReferenceResult | None) -> dict[str, Any]:
    body: dict[str, Any] = {
        "exit": asdict(attempt.exit),
        "ops": [dict(_lean(asdict(op))) for op in attempt.ops],
        "graph": asdict(attempt.graph) if attempt.graph is not None else None,
        "curve": asdict(attempt.curve),
        "reference_curve": asdict(attempt.reference_curve),
        "envelope": asdict(attempt.envelope),
        "forced_cpu": list(attempt.forced_cpu),
        "memory_peak": attempt.memory_peak,
    }
    if reference is not None:
        body["reference"] = {
            "exit": asdict(reference.exit),
            "parameters": reference.parameters,
            "partial": list(reference.partial),
            "repairs": list(reference.repairs),
        }
    plain: dict[str, Any] = strict(body)
    return plain


def _lean(op: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """An operator without its timings, which differ from run to run and would defeat content addressing."""
    return ((key, value) for key, value in op.items() if key != "ns")
