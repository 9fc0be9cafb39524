"""What a sweep means to execute: which workloads stand for the plan's kernel keys, in which order, as which jobs."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Final

from sqlalchemy import Engine

from neuronqa.db import planning, queries
from neuronqa.db.patience import patiently
from neuronqa.db.planning import Outstanding
from neuronqa.db.queries import SweepRow
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import AttemptKind, Case, Variant
from neuronqa.domain.job import Job, Ticket
from neuronqa.domain.policy import Policy
from neuronqa.domain.workload import Workload
from neuronqa.sweep.cost import learn
from neuronqa.sweep.request import SweepRequest
from neuronqa.sweep.schedule import Assignment, CostModel, by_value

PAGE: Final = 1000
"""Cases read ahead of their execution."""


@dataclass(frozen=True, kw_only=True)
class Agenda:
    """A sweep's plan, read from the database as it is worked off."""

    sweep: SweepRow
    request: SweepRequest
    policy: Policy
    cost: CostModel
    engine: Engine

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The policy's variants without those a person chose not to run."""
        kept = self.request.narrowing
        return tuple(v for v in self.policy.variants if kept.keeps(v.mode, v.dtype))

    def cases(self) -> Iterator[Case]:
        """Everything to be executed, most value per second first."""
        with self.engine.connect() as db:
            candidates = planning.candidates(db, self.sweep.plan_id)
            order = by_value(candidates, self.variants, self.cost)[: self.request.limit]
        for start in range(0, len(order), PAGE):
            with self.engine.connect() as db:
                chunk = planning.hashes(db, order[start : start + PAGE])
            for workload in chunk:
                for variant in self.variants:
                    yield Case(workload=workload, device=self.request.device, variant=variant)

    @property
    def widths(self) -> list[int]:
        """On how many ranks cases run, fewest first. A fleet is laid out for one width at a time."""
        return sorted({variant.ranks for variant in self.variants})

    def jobs(self, order: BuildOrder, ranks: int) -> Iterator[Assignment]:
        """A job for every workload with planned cases on so many ranks that nobody has executed, in planned order."""
        after = -1
        while page := patiently(partial(self._page, after)):
            after = page[-1].position
            bodies = patiently(partial(self._bodies, page))
            wide = (one for one in page if one.variant.ranks == ranks)
            for workload, cases in groupby(wide, key=lambda one: one.workload):
                yield self.assignment(bodies[workload], [one.variant for one in cases], AttemptKind.RECORD, order)

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
            bundle=self.request.bundle,
        )
        return Assignment(
            job=job,
            kinds={ticket.id: kind for ticket in tickets},
            expected_s=self.cost.expect(workload.spec.family, variants),
        )

    def _bodies(self, page: Sequence[Outstanding]) -> dict[str, Workload]:
        with self.engine.connect() as db:
            return queries.workloads(db, list(dict.fromkeys(one.workload for one in page)))

    def _page(self, after: int) -> list[Outstanding]:
        """The next cases; those of one workload, which lie side by side, are never torn apart."""
        with self.engine.connect() as db:
            page = planning.outstanding(db, self.sweep.id, after, PAGE)
        if len(page) < PAGE:
            return page
        return [one for one in page if one.workload != page[-1].workload]


def load_agenda(engine: Engine, name: str, request: SweepRequest, policy: Policy) -> Agenda:
    """The agenda of the sweep called `name`, with what past attempts taught about costs."""
    with engine.connect() as db:
        return Agenda(sweep=queries.sweep(db, name), request=request, policy=policy, cost=learn(db), engine=engine)


def new_ticket() -> str:
    """Random, and says nothing."""
    return secrets.token_hex(16)
