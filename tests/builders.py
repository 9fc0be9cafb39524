"""Small values tests are made of. Everything here goes through the real types; nothing stands in for code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from neuronqa.db.rows import AttemptRecord
from neuronqa.db.store import Store, SweepHeader
from neuronqa.domain.build import BuildOrder, BuildVector
from neuronqa.domain.case import AttemptKind, Case, Dtype, Mode, Phase, Variant
from neuronqa.domain.catalog import CatalogInfo, Entry, ListingStatus, Source
from neuronqa.domain.finding import Finding
from neuronqa.domain.identity import content_hash
from neuronqa.domain.job import AttemptResult, Job, JobResult, ReferenceResult, Ticket
from neuronqa.domain.observation import Exit, Progress
from neuronqa.domain.outcome import Check, Kind, Outcome
from neuronqa.domain.plan import PlanGroup
from neuronqa.domain.policy import Policy, applies
from neuronqa.domain.workload import ModuleSpec, Workload
from neuronqa.sweep.policies import load_policy

EAGER = Variant(Mode.EAGER, Dtype.FP32, Phase.TRAIN)
COMPILED = Variant(Mode.COMPILE, Dtype.FP32, Phase.TRAIN)
QUICK = load_policy("quick")
OF_THE_REFERENCE = (Check.BUILD, Check.INPUTS, Check.REFERENCE)
ORDER = BuildOrder(device="neuron", profile="ideal")
LEFT = Exit(done=True, progress=Progress.DONE, cpu_s=1.0, wall_s=1.25, peak_rss=1000)


def workload(name: str, seed: int = 0) -> Workload:
    return Workload(ModuleSpec(source="tests/none.py", source_sha256="0" * 64, factory=name, seed=seed))


def checks(variant: Variant) -> list[Check]:
    return [check for check in Check if applies(check, variant)]


def said(check: Check, kind: Kind, detail: str = "", **more: Any) -> Finding:
    more.setdefault("evidence", {"words": f"{check.value} said {kind.value}"})
    return Finding(check=check, outcome=Outcome.of(kind, detail), **more)


def passed(variant: Variant) -> list[Finding]:
    """A case in which every check passed."""
    return [said(check, Kind(f"{check.value}:pass")) for check in checks(variant)]


def failed(variant: Variant, check: Check, kind: Kind, detail: str = "", **more: Any) -> list[Finding]:
    """A case that passed until `check`; what comes after it is blocked."""
    order = list(Check)
    found = []
    for finding in passed(variant):
        if finding.check is check:
            found.append(said(check, kind, detail, **more))
        elif order.index(finding.check) < order.index(check):
            found.append(finding)
        else:
            found.append(said(finding.check, Kind.NOT_RUN_BLOCKED, check.value))
    return found


def but(findings: Sequence[Finding], *changed: Finding) -> list[Finding]:
    """The same findings with some replaced: the sweep went on past a failure."""
    by_check = {finding.check: finding for finding in changed}
    return [by_check.get(finding.check, finding) for finding in findings]


def record(
    of: Workload,
    variant: Variant = EAGER,
    findings: Sequence[Finding] | None = None,
    kind: AttemptKind = AttemptKind.RECORD,
    **more: Any,
) -> AttemptRecord:
    ticket = content_hash([of.hash, str(variant), kind.value, more.pop("take", 0)])
    values: dict[str, Any] = {"started": 1.7e9, "wall_s": 1.25, "cpu_s": 1.0, "peak_rss": 1000, "ticket": ticket}
    return AttemptRecord(
        case=Case(workload=of.hash, device="neuron", variant=variant),
        kind=kind,
        findings=passed(variant) if findings is None else findings,
        **{**values, **more},
    )


def vector(**changes: Any) -> BuildVector:
    return replace(
        BuildVector(adapter="neuron", profile="ideal", profile_sha256="a" * 64, shim="s", passes="p"), **changes
    )


def eligible(of: Workload, kernel_key: str = "", model_type: str = "") -> PlanGroup:
    return PlanGroup(
        listing=ListingStatus.ELIGIBLE.outcome(),
        kernel_key=kernel_key or of.hash,
        graph_key=of.hash,
        workload=of.hash,
        model_type=model_type or of.spec.family,
    )


def entries(groups: Iterable[tuple[PlanGroup, int, int]]) -> list[tuple[Entry, PlanGroup]]:
    """`(group, how many, downloads of each)` as entries in rank order."""
    out: list[tuple[Entry, PlanGroup]] = []
    for group, count, downloads in groups:
        for _ in range(count):
            rank = len(out) + 1
            out.append((Entry(id=f"synthetic/model-{rank}", rank=rank, downloads=downloads, task="text"), group))
    return out


def save_plan(
    store: Store,
    workloads: Iterable[Workload],
    listed: Sequence[tuple[Entry, PlanGroup]],
    *,
    registered: int | None = None,
    key: str = "p" * 32,
) -> int:
    info = CatalogInfo(
        name="little",
        source=Source.SYNTHETIC,
        sha256="c" * 64,
        registered=len(listed) if registered is None else registered,
        created="",
    )
    return store.save_plan(key, info, {"torch": "2.13.0"}, workloads, listed)


def open_sweep(
    store: Store,
    plan_id: int,
    policy: Policy = QUICK,
    /,
    *,
    name: str = "one",
    build: BuildVector | None = None,
    terms: str = "",
    **options: Any,
) -> int:
    return store.create_sweep(
        SweepHeader(
            name=name,
            plan_id=plan_id,
            build=build or vector(),
            terms=terms,
            device="neuron",
            policy=policy,
            policy_json=policy.to_json(),
            options=options,
            seed=7,
            cores=2,
        )
    )


def summary(**changes: Any) -> dict[str, Any]:
    return {
        "audit": {"drawn": 0, "disagreed": 0, "bound": 1.0},
        "controls": {"planted": 0, "judged": 0, "caught": 0},
        "withheld": {},
        "planned": 0,
        "reuse": {"spared": 0, "drawn": 0, "disagreed": 0, "disagreeing": []},
        **changes,
    }


def job(of: Workload, variants: Sequence[Variant] = (EAGER, COMPILED), policy: Policy = QUICK) -> Job:
    tickets = tuple(Ticket(id=content_hash([of.hash, str(v), "ticket"]), variant=v, order=ORDER) for v in variants)
    return Job(workload=of, tickets=tickets, thresholds=policy.thresholds, limits=policy.limits)


def result(of: Job, found: Mapping[Variant, Sequence[Finding]] | None = None, **more: Any) -> JobResult:
    """What a worker sends back for a job: one reference for each dtype and phase, one attempt a ticket."""
    said_of = {t.variant: (found or {}).get(t.variant, passed(t.variant)) for t in of.tickets}
    references: dict[tuple[Dtype, Phase], ReferenceResult] = {}
    for variant, findings in said_of.items():
        references.setdefault(
            (variant.dtype, variant.phase),
            ReferenceResult(
                variant=replace(variant, mode=Mode.EAGER),
                findings=tuple(f for f in findings if f.check in OF_THE_REFERENCE),
                exit=replace(LEFT, cpu_s=0.5),
                parameters=1000,
            ),
        )
    attempts = tuple(
        AttemptResult(
            ticket=ticket.id,
            variant=ticket.variant,
            findings=tuple(f for f in said_of[ticket.variant] if f.check not in OF_THE_REFERENCE),
            exit=LEFT,
            ops_complete=True,
            started=1.7e9,
        )
        for ticket in of.tickets
    )
    values: dict[str, Any] = {
        "references": tuple(references.values()),
        "attempts": attempts,
        "node": "n",
        "worker": "w",
    }
    return JobResult(workload=of.workload.hash, **{**values, **more})
