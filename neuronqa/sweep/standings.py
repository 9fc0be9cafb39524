"""A sweep's standings, worked out anew from its rows: the same function for the driver, the report and the pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from neuronqa.db import planning, queries
from neuronqa.db.queries import SweepRow
from neuronqa.domain.case import Dtype, Mode
from neuronqa.domain.ladder import EntryState, Evidence, Findings
from neuronqa.domain.outcome import Kind, Outcome
from neuronqa.domain.plan import PlannedGroup
from neuronqa.domain.policy import Policy
from neuronqa.sweep.policies import Narrowing
from neuronqa.sweep.settle import settle


@dataclass(frozen=True, kw_only=True)
class Standings:
    """Where every group stands, and by whose findings."""

    groups: Sequence[PlannedGroup]
    states: Mapping[int, EntryState]
    findings: Mapping[str, Findings]
    representative: Mapping[str, str]

    @property
    def standing_by(self) -> dict[int, str]:
        """Group id -> hash of the workload whose findings decide it. Groups that nothing ran for are absent."""
        by = {}
        for planned in self.groups:
            match self.states[planned.id].evidence:
                case Evidence.EXECUTED:
                    by[planned.id] = planned.group.workload
                case Evidence.INHERITED:
                    by[planned.id] = self.representative[planned.group.kernel_key]
                case Evidence.NONE:
                    pass
        return by

    @property
    def inherited_workloads(self) -> int:
        """Distinct workloads whose verdict is another's."""
        return len({p.group.workload for p in self.groups if self.states[p.id].evidence is Evidence.INHERITED})


def standings(db: Connection, row: SweepRow) -> Standings:
    """Settle `row` with what the database holds now."""
    groups: list[PlannedGroup] = []
    states: dict[int, EntryState] = {}
    findings: dict[str, Findings] = {}
    representative: dict[str, str] = {}
    for part in partial_standings(db, row):
        groups += part.groups
        states |= part.states
        findings |= part.findings
        representative |= part.representative
    groups.sort(key=lambda planned: planned.id)
    return Standings(groups=groups, states=states, findings=findings, representative=representative)


def partial_standings(db: Connection, row: SweepRow) -> Iterator[Standings]:
    """The same in parts that together hold every group once, so that a large plan need not fit in memory."""
    options = row.options
    narrowing = Narrowing(
        mode=Mode(options["mode"]) if options.get("mode") else None,
        dtype=Dtype(options["dtype"]) if options.get("dtype") else None,
    )
    policy = Policy.from_json(row.policy)
    for groups in planning.families(db, row.plan_id):
        own = sorted({planned.group.workload for planned in groups if planned.group.workload})
        findings = queries.findings(db, row.id, workloads=own)
        representative = ran_for(groups, findings)
        states = settle(policy, groups, findings, representative, narrowing, unsaid(row))
        yield Standings(groups=groups, states=states, findings=findings, representative=representative)


def ran_for(groups: Sequence[PlannedGroup], findings: Mapping[str, Findings]) -> dict[str, str]:
    """Kernel key -> the executed workload that stands for it: the one of most entries, then downloads, then hash."""
    best: dict[str, PlannedGroup] = {}
    for planned in groups:
        if planned.group.workload in findings:
            known = best.get(planned.group.kernel_key)
            if known is None or _weight(planned) > _weight(known):
                best[planned.group.kernel_key] = planned
    return {key: planned.group.workload for key, planned in best.items()}


def unsaid(row: SweepRow) -> Outcome:
    """Why a required finding is absent."""
    if row.state in ("interrupted", "running"):
        return Outcome(Kind.NOT_RUN_INTERRUPTED)
    if row.options.get("budget_s") is not None:
        return Outcome(Kind.NOT_RUN_BUDGET)
    return Outcome(Kind.NOT_RUN_LIMIT)


def _weight(planned: PlannedGroup) -> tuple[int, int, str]:
    return planned.entries, planned.downloads, planned.group.workload
