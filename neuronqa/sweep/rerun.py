"""Running a case again by itself, on the build of a sweep that is over: to confirm, to reproduce, to make smaller."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from neuronqa.db.queries import SweepRow
from neuronqa.device.prepare import prepare
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Variant
from neuronqa.domain.finding import Finding
from neuronqa.domain.job import Job, Ticket
from neuronqa.domain.policy import Policy
from neuronqa.domain.workload import Workload
from neuronqa.errors import EnvironmentFault
from neuronqa.sweep.agenda import new_ticket
from neuronqa.sweep.request import SweepRequest
from neuronqa.worker.actor import CaseActor


@dataclass(frozen=True, kw_only=True)
class Again:
    """One more run of a case: every finding, of the reference's checks and of the device's."""

    findings: tuple[Finding, ...]


class Bench:
    """A worker of our own, on one build. To be used on the main thread."""

    def __init__(self, actor: CaseActor, order: BuildOrder, policy: Policy) -> None:
        self._actor = actor
        self._order = order
        self._policy = policy

    def run(self, workload: Workload, variants: Sequence[Variant]) -> dict[Variant, Again]:
        """Run each variant once. One that was lost is absent."""
        tickets = tuple(Ticket(id=new_ticket(), variant=variant, order=self._order) for variant in variants)
        limits = replace(self._policy.limits, probes=0)
        job = Job(workload=workload, tickets=tickets, thresholds=self._policy.thresholds, limits=limits)
        result = self._actor.run([job])[0]
        before = {(one.variant.dtype, one.variant.phase): one.findings for one in result.references}
        return {
            one.variant: Again(findings=(*before.get((one.variant.dtype, one.variant.phase), ()), *one.findings))
            for one in result.attempts
            if not one.probe_of
        }


def order(row: SweepRow) -> BuildOrder:
    """The build of a sweep, prepared. Raises EnvironmentFault where this machine no longer makes that build."""
    prepared = prepare(SweepRequest.kept(row.options, None).order)
    if prepared.vector.hash != row.build_hash:
        raise EnvironmentFault(
            f"the build of sweep {row.name} is not here any more",
            where=row.build_hash[:12],
            hint="check out what it was made of; results of two builds are never mixed",
        )
    return prepared.order


@contextmanager
def bench(row: SweepRow) -> Iterator[Bench]:
    """The build of a sweep, ready to run. Raises EnvironmentFault like :func:`order`."""
    with bench_of(order(row), Policy.from_json(row.policy)) as ready:
        yield ready


@contextmanager
def bench_of(order: BuildOrder, policy: Policy) -> Iterator[Bench]:
    """A prepared build, ready to run."""
    actor = CaseActor(order.device)
    try:
        actor.ready()
        yield Bench(actor, order, policy)
    finally:
        actor.close()
