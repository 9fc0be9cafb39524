"""One stretch of a sweep's execution: main jobs with controls between them, then the audit."""

from __future__ import annotations

import time
from typing import Any, Final

from neuronqa.db import planning, queries
from neuronqa.db.store import Store
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import AttemptKind
from neuronqa.sweep import controls as control_pool
from neuronqa.sweep.agenda import Agenda, new_ticket
from neuronqa.sweep.audit import AUDIT_SHARE, draw
from neuronqa.sweep.driver import Deal, Display, Driver, Progress
from neuronqa.sweep.fleet import Fleet
from neuronqa.sweep.reuse import reuse_summary
from neuronqa.sweep.schedule import Assignment, Queue
from neuronqa.sweep.settle import audit
from neuronqa.sweep.standings import ran_for

CONTROL_STRIDE: Final = 3
"""One control is dealt before every third job, so that no budget can starve them and no worker is spared."""


RESERVED_MOST: Final = 0.2
"""Of a budget, for the audit."""


class Leg:
    """Executes what an agenda still lacks, on a fleet, until done, out of time or stopped."""

    def __init__(self, agenda: Agenda, store: Store, order: BuildOrder, display: Display, fleet: Fleet) -> None:
        self._agenda = agenda
        self._order = order
        self._fleet = fleet
        sweep_id = agenda.sweep.id
        with agenda.engine.connect() as db:
            judged = {row.name for row in queries.controls(db, sweep_id)}
            self._planned = planning.planned_workloads(db, sweep_id)
            left = planning.left(db, sweep_id)
        self._planted = control_pool.load_controls(agenda.policy, agenda.request.device) if self._planned else []
        missing = [control for control in self._planted if control.name not in judged]
        store.save_workloads(control.workload for control in missing)
        self._controls, key = control_pool.assignments(missing, agenda.policy, order, agenda.request.seed, new_ticket)
        deal = Deal(
            sweep_id=sweep_id,
            device=agenda.request.device,
            key=key,
            max_failures=agenda.request.max_failures,
        )
        progress = Progress(planned=left.cases, budget_s=agenda.request.budget_s)
        self.driver = Driver(fleet, store, deal, progress, display)

    @property
    def state(self) -> str:
        """What to call the sweep once this leg is over."""
        return "interrupted" if self.driver.stopped == "interrupted" else "done"

    def run(self) -> None:
        """Work through the main jobs and the controls, then audit."""
        budget = self._agenda.request.budget_s
        began = time.monotonic()
        share = None if budget is None else began + budget - self._reserved(budget)
        self._fleet.check_room(max(self._agenda.widths, default=1))
        for width in self._agenda.widths:
            if not (self.driver.stopped or (queue := self._queue(width)).empty):
                self._fleet.lay_out(width)
                self.driver.run(queue, share)
        if not self.driver.stopped:
            self._fleet.lay_out(1)
            self.driver.run(Queue(self._audits(), by_value=True), None if budget is None else began + budget)

    def _queue(self, width: int) -> Queue:
        """Cases of one width; controls run on one rank, between the cases that do."""
        main = self._agenda.jobs(self._order, width)
        controls = self._controls if width == 1 else ()
        return Queue(main, controls, CONTROL_STRIDE, by_value=self._agenda.request.budget_s is not None)

    def summary(self) -> dict[str, Any]:
        """What the report needs and the rows alone do not say: the audit, the controls' verdict, what was planned."""
        sweep, policy = self._agenda.sweep, self._agenda.policy
        with self._agenda.engine.connect() as db:
            audited = queries.findings(db, sweep.id, [AttemptKind.AUDIT.value])
            groups = planning.relatives(db, sweep.plan_id, list(audited))
            findings = queries.findings(db, sweep.id, workloads=sorted({p.group.workload for p in groups}))
            reuse = reuse_summary(db, sweep.id)
            verdicts = [control_pool.verdict(row) for row in queries.controls(db, sweep.id)]
        checked = audit(policy, groups, audited, findings, ran_for(groups, findings))
        return {
            "audit": {"drawn": checked.drawn, "disagreed": checked.disagreed, "bound": checked.bound},
            "controls": {
                "planted": len(self._planted),
                "judged": len(verdicts),
                "caught": sum(v.caught for v in verdicts),
            },
            "withheld": {rung.value: why for rung, why in control_pool.withheld(self._planted, verdicts).items()},
            "planned": self._planned,
            "refused nodes": dict(self._fleet.refused),
            "reuse": reuse,
        }

    def _reserved(self, budget: float) -> float:
        """Seconds kept for the audit: its share, or enough for one workload, but no more than a fifth."""
        one = self._agenda.cost.expect("", self._agenda.variants)
        return max(budget * AUDIT_SHARE, min(budget * RESERVED_MOST, one))

    def _audits(self) -> list[Assignment]:
        agenda = self._agenda
        with agenda.engine.connect() as db:
            audited = set(queries.findings(db, agenda.sweep.id, [AttemptKind.AUDIT.value]))
            drawn = draw(planning.heirs(db, agenda.sweep.plan_id, agenda.sweep.id), audited, agenda.request.seed)
            bodies = queries.workloads(db, drawn)
            spent = queries.work(db, agenda.sweep.id).cpu_by_kind
        allowance = AUDIT_SHARE * sum(spent.values()) - spent.get(AttemptKind.AUDIT.value, 0.0)
        alone = [variant for variant in agenda.variants if variant.ranks == 1]
        chosen: list[Assignment] = []
        for hash_ in drawn:
            assignment = agenda.assignment(bodies[hash_], alone, AttemptKind.AUDIT, self._order)
            allowance -= assignment.expected_s
            if allowance < 0 and (chosen or audited):
                break
            chosen.append(assignment)
        return chosen
