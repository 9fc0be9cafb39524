"""What a sweep means to execute: which workloads stand for the plan's kernel keys, in which order, as which jobs."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Engine

from neuronqa.db import queries
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import AttemptKind, Case, Variant
from neuronqa.domain.job import Job, Ticket
from neuronqa.domain.plan import PlannedGroup, PlannedWorkload
from neuronqa.domain.policy import Policy
from neuronqa.domain.workload import Workload
from neuronqa.sweep.cost import learn
from neuronqa.sweep.plan import representatives
from neuronqa.sweep.request import SweepRequest
from neuronqa.sweep.schedule import Assignment, CostModel, by_value


@dataclass(frozen=True, kw_only=True)
class Agenda:
    """A sweep's plan in memory."""

    sweep_id: int
    name: str
    request: SweepRequest
    policy: Policy
    groups: Sequence[PlannedGroup]
    workloads: Mapping[str, Workload]
    order: Sequence[PlannedWorkload]
    cost: CostModel
    engine: Engine

    @property
    def variants(self) -> tuple[Variant, ...]:
        """What is really run."""
        return run_variants(self.request, self.policy)

    def cases(self, planned: Sequence[PlannedWorkload]) -> Iterator[Case]:
        """The cases of these workloads, in order."""
        for one in planned:
            for variant in self.variants:
                yield Case(workload=one.workload.hash, device=self.request.device, variant=variant)

    def assignment(
        self, workload: Workload, variants: Sequence[Variant], kind: AttemptKind, order: BuildOrder
    ) -> Assignment:
        """A job with one new ticket per variant."""
        tickets = tuple(Ticket(id=new_ticket(), variant=variant, order=order) for variant in variants)
        job = Job(
            workload=workload,
            tickets=tickets,
            thresholds=self.policy.thresholds,
            limits=self.policy.limits,
        )
        return Assignment(
            job=job,
            kinds={ticket.id: kind for ticket in tickets},
            expected_s=self.cost.expect(workload, variants),
        )


def load_agenda(engine: Engine, name: str, request: SweepRequest, policy: Policy) -> Agenda:
    """Read the plan of the sweep called `name` and put its workloads in order."""
    with engine.connect() as db:
        row = queries.sweep(db, name)
        groups = queries.groups(db, row.plan_id)
        workloads = queries.workloads(db, sorted({g.group.workload for g in groups if g.group.workload}))
        cost = learn(db)
    order = by_value(representatives(groups, workloads), run_variants(request, policy), cost)
    return Agenda(
        sweep_id=row.id,
        name=row.name,
        request=request,
        policy=policy,
        groups=groups,
        workloads=workloads,
        order=order[: request.limit],
        cost=cost,
        engine=engine,
    )


def run_variants(request: SweepRequest, policy: Policy) -> tuple[Variant, ...]:
    """The policy's variants without those a person chose not to run."""
    kept = request.narrowing
    return tuple(v for v in policy.variants if kept.keeps(v.mode, v.dtype))


def new_ticket() -> str:
    """Random, and says nothing."""
    return secrets.token_hex(16)
