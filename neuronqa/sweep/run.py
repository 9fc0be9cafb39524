"""A sweep from end to end: prepare the device, plan the catalog, execute, audit, settle."""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, Final, Protocol

from sqlalchemy import Engine

from neuronqa import catalog as catalogs
from neuronqa.db import queries
from neuronqa.db.engine import check_file, database_url, driver_lock, open_engine, sweep_lock
from neuronqa.db.queries import SweepRow
from neuronqa.db.store import Store, SweepHeader
from neuronqa.device.prepare import Prepared, prepare
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import AttemptKind, Case, Dtype, Mode, Variant
from neuronqa.domain.job import Job, Ticket
from neuronqa.domain.plan import PlannedGroup, PlannedWorkload
from neuronqa.domain.policy import Policy
from neuronqa.domain.workload import Workload
from neuronqa.errors import BadInput
from neuronqa.sweep import controls as control_pool
from neuronqa.sweep.audit import AUDIT_LIMIT, AUDIT_SHARE, draw
from neuronqa.sweep.census import statuses_of
from neuronqa.sweep.closed_ray import local_ray
from neuronqa.sweep.cost import learn
from neuronqa.sweep.driver import Deal, Display, Driver, Progress
from neuronqa.sweep.fleet import Fleet
from neuronqa.sweep.plan import make_plan, representatives
from neuronqa.sweep.policies import Narrowing, load_policy
from neuronqa.sweep.private_network import enter_private_network
from neuronqa.sweep.schedule import Assignment, CostModel, Queue, by_value
from neuronqa.sweep.settle import audit
from neuronqa.sweep.standings import ran_for, standings

CONTROL_STRIDE: Final = 3
"""One control is dealt before every third job, so that no budget can starve them and no worker is spared."""

DEFAULT_PROFILE: Final = "trn2-sdk2.33"
DEFAULT_DEVICE: Final = "neuron"


def default_workers() -> int:
    """One worker a core this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True, kw_only=True)
class SweepRequest:
    """What a person asked for. Kept with the sweep, so that `--resume` needs only its name."""

    catalog: str
    workers: int
    select: str = ""
    policy: str = "gating"
    device: str = DEFAULT_DEVICE
    profile: str = DEFAULT_PROFILE
    overlays: tuple[str, ...] = ()
    budget_s: float | None = None
    limit: int | None = None
    mode: Mode | None = None
    dtype: Dtype | None = None
    max_failures: int | None = None
    seed: int = 0

    @property
    def narrowing(self) -> Narrowing:
        return Narrowing(mode=self.mode, dtype=self.dtype)


class Stage(Protocol):
    """Told what the sweep is about to do, so that a person sees why nothing runs yet."""

    def stage(self, text: str) -> None: ...


class SweepDisplay(Display, Stage, Protocol):
    """Both kinds of news."""


@dataclass(frozen=True, kw_only=True)
class Swept:
    """What a finished (or interrupted) leg leaves behind."""

    name: str
    state: str


FleetMaker = Callable[[SweepRequest, Prepared], AbstractContextManager[Fleet]]


def run_sweep(request: SweepRequest, db: str | None, display: SweepDisplay, make_fleet: FleetMaker) -> Swept:
    """Plan and execute a new sweep. Raises BadInput or EnvironmentFault before anything is executed."""
    policy = load_policy(request.policy)
    catalog = catalogs.open(request.catalog, select=request.select, statuses=statuses_of)
    if catalog.notice:
        display.stage(catalog.notice)
    with _database(db) as engine:
        store = Store(engine)
        display.stage(f"Preparing device {request.device} ({request.profile})")
        prepared = prepare(BuildOrder(device=request.device, profile=request.profile, overlays=request.overlays))
        display.stage(
            f"Planning {catalog.info.registered:,} entries of {catalog.info.name} ({catalog.info.source.value})"
        )
        plan_id = make_plan(catalog, store)
        header = SweepHeader(
            name=time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + secrets.token_hex(2),
            plan_id=plan_id,
            build=prepared.vector,
            device=request.device,
            policy=policy,
            policy_json=policy.to_json(),
            options=asdict(request),
            seed=request.seed,
            cores=request.workers,
        )
        sweep_id = store.create_sweep(header)
        with sweep_lock(engine, sweep_id):
            plan = _load(engine, sweep_id, header.name, request, policy)
            store.plan_cases(sweep_id, plan.cases(plan.order))
            return _execute(plan, store, prepared, display, make_fleet)


def resume_sweep(
    name: str, db: str | None, workers: int | None, display: SweepDisplay, make_fleet: FleetMaker
) -> Swept:
    """Go on where a sweep was interrupted: every planned case without a result, then controls and audits."""
    with _database(db, create=False) as engine:
        with engine.connect() as connection:
            row = queries.sweep(connection, name)
        request = _request(row, workers)
        display.stage(f"Preparing device {request.device} ({request.profile})")
        prepared = prepare(BuildOrder(device=request.device, profile=request.profile, overlays=request.overlays))
        if prepared.vector.hash != row.build_hash:
            raise BadInput(
                "the device build has changed since this sweep began",
                where=row.name,
                hint="start a new sweep; results of two builds are never mixed",
            )
        store = Store(engine)
        with sweep_lock(engine, row.id):
            store.reopen_sweep(row.id)
            plan = _load(engine, row.id, row.name, request, Policy.from_json(row.policy))
            return _execute(plan, store, prepared, display, make_fleet)


@contextmanager
def ray_fleet(request: SweepRequest, prepared: Prepared, *, private: bool = True) -> Iterator[Fleet]:
    """A fleet on a closed local Ray; `private`: in a network of its own, from which nothing else can be reached."""
    if private:
        enter_private_network()
    # Ray prints what befalls its workers on stdout, where somebody may expect JSON; each loss comes back as one anyway.
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), local_ray(request.workers) as environment:
        from neuronqa.sweep.ray_fleet import RayFleet

        settings = {"device": prepared.order.device}
        options = {"num_cpus": 1, "runtime_env": {"env_vars": {**environment}}}
        fleet = RayFleet(request.workers, options, settings)
        try:
            yield fleet
        finally:
            fleet.close()


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """A sweep's plan in memory: groups, workloads in order, and who stands for which kernel key."""

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
        kept = self.request.narrowing
        return tuple(v for v in self.policy.variants if kept.keeps(v.mode, v.dtype))

    def cases(self, planned: Sequence[PlannedWorkload]) -> Iterator[Case]:
        for one in planned:
            for variant in self.variants:
                yield Case(workload=one.workload.hash, device=self.request.device, variant=variant)

    def assignment(
        self, workload: Workload, variants: Sequence[Variant], kind: AttemptKind, order: BuildOrder
    ) -> Assignment:
        tickets = tuple(Ticket(id=_new_ticket(), variant=variant, order=order) for variant in variants)
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


def _execute(plan: _Plan, store: Store, prepared: Prepared, display: SweepDisplay, make_fleet: FleetMaker) -> Swept:
    display.stage(f"Starting {plan.request.workers} workers")
    with make_fleet(plan.request, prepared) as fleet:
        fleet.await_first()
        began = time.monotonic()
        leg = _Leg(plan, store, prepared, display, fleet)
        with _on_interrupt(leg.driver.stop):
            leg.run()
    store.finish_sweep(plan.sweep_id, leg.state, time.monotonic() - began, _summary(plan, leg.planted))
    with plan.engine.connect() as db:
        settled = standings(db, queries.sweep(db, plan.name))
    store.save_standings(plan.sweep_id, settled.states.items())
    return Swept(name=plan.name, state=leg.state)


class _Leg:
    """One stretch of execution: main jobs with controls between them, then the audit."""

    def __init__(self, plan: _Plan, store: Store, prepared: Prepared, display: SweepDisplay, fleet: Fleet) -> None:
        self._plan = plan
        self._prepared = prepared
        self.planted = control_pool.load_controls(plan.policy) if plan.order else []
        with plan.engine.connect() as db:
            judged = {row.name for row in queries.controls(db, plan.sweep_id)}
            self._todo = queries.outstanding(db, plan.sweep_id)
        missing = [control for control in self.planted if control.name not in judged]
        store.save_workloads(control.workload for control in missing)
        self._controls, key = control_pool.assignments(
            missing, plan.policy, prepared.order, plan.request.seed, _new_ticket
        )
        budget = plan.request.budget_s
        deal = Deal(
            sweep_id=plan.sweep_id,
            device=plan.request.device,
            key=key,
            max_failures=plan.request.max_failures,
        )
        self._main = self._main_jobs()
        progress = Progress(planned=len(self._main), budget_s=budget)
        self.driver = Driver(fleet, store, deal, progress, display)

    @property
    def state(self) -> str:
        if self.driver.stopped == "interrupted":
            return "interrupted"
        return "done"

    def run(self) -> None:
        budget = self._plan.request.budget_s
        began = time.monotonic()
        share = None if budget is None else began + budget * (1.0 - AUDIT_SHARE)
        self.driver.run(Queue(self._main, self._controls, CONTROL_STRIDE), share)
        if not self.driver.stopped:
            self.driver.run(Queue(self._audits(), (), 1), None if budget is None else began + budget)

    def _main_jobs(self) -> list[Assignment]:
        by_workload: dict[str, list[Variant]] = {}
        for workload_hash, variant in self._todo:
            by_workload.setdefault(workload_hash, []).append(variant)
        return [
            self._plan.assignment(self._plan.workloads[hash_], variants, AttemptKind.RECORD, self._prepared.order)
            for hash_, variants in by_workload.items()
        ]

    def _audits(self) -> list[Assignment]:
        plan = self._plan
        with plan.engine.connect() as db:
            findings = queries.findings(db, plan.sweep_id)
            audited = set(queries.findings(db, plan.sweep_id, [AttemptKind.AUDIT.value]))
            spent = queries.work(db, plan.sweep_id).cpu_by_kind
        drawn = draw(plan.groups, ran_for(plan.groups, findings), set(findings), audited, plan.request.seed)
        allowance = AUDIT_SHARE * sum(spent.values()) - spent.get(AttemptKind.AUDIT.value, 0.0)
        chosen: list[Assignment] = []
        for hash_ in drawn[: max(0, AUDIT_LIMIT - len(audited))]:
            assignment = plan.assignment(plan.workloads[hash_], plan.variants, AttemptKind.AUDIT, self._prepared.order)
            allowance -= assignment.expected_s
            if allowance < 0:
                break
            chosen.append(assignment)
        return chosen


def _summary(plan: _Plan, planted: Sequence[control_pool.Control]) -> dict[str, Any]:
    """What the report needs and the rows alone do not say: the audit, the controls' verdict, what was planned."""
    with plan.engine.connect() as db:
        findings = queries.findings(db, plan.sweep_id)
        audited = queries.findings(db, plan.sweep_id, [AttemptKind.AUDIT.value])
        verdicts = [control_pool.verdict(row) for row in queries.controls(db, plan.sweep_id)]
    checked = audit(plan.policy, plan.groups, audited, findings, ran_for(plan.groups, findings))
    return {
        "audit": {"drawn": checked.drawn, "disagreed": checked.disagreed, "bound": checked.bound},
        "controls": {"planted": len(planted), "caught": sum(v.caught for v in verdicts)},
        "withheld": {rung.value: why for rung, why in control_pool.withheld(planted, verdicts).items()},
        "planned": len(plan.order),
    }


def _load(engine: Engine, sweep_id: int, name: str, request: SweepRequest, policy: Policy) -> _Plan:
    with engine.connect() as db:
        row = queries.sweep(db, name)
        groups = queries.groups(db, row.plan_id)
        workloads = queries.workloads(db, sorted({g.group.workload for g in groups if g.group.workload}))
        cost = learn(db)
    kept = request.narrowing
    variants = [v for v in policy.variants if kept.keeps(v.mode, v.dtype)]
    order = by_value(representatives(groups, workloads), variants, cost)
    if request.limit is not None:
        order = order[: request.limit]
    return _Plan(
        sweep_id=sweep_id,
        name=name,
        request=request,
        policy=policy,
        groups=groups,
        workloads=workloads,
        order=order,
        cost=cost,
        engine=engine,
    )


def _request(row: SweepRow, workers: int | None) -> SweepRequest:
    options = dict(row.options)
    options["overlays"] = tuple(options.get("overlays", ()))
    options["mode"] = Mode(options["mode"]) if options.get("mode") else None
    options["dtype"] = Dtype(options["dtype"]) if options.get("dtype") else None
    request = SweepRequest(**options)
    return request if workers is None else replace(request, workers=workers)


@contextmanager
def _database(named: str | None, *, create: bool = True) -> Iterator[Engine]:
    url = database_url(named)
    check_file(url, create=create)
    with driver_lock(url):
        engine = open_engine(named, create=create)
        try:
            yield engine
        finally:
            engine.dispose()


@contextmanager
def _on_interrupt(stop: Callable[[str], None]) -> Iterator[None]:
    """First Ctrl-C (or SIGTERM): hand out nothing more. Second Ctrl-C: leave at once."""

    def handle(_number: int, _frame: FrameType | None) -> None:
        stop("interrupted")
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _new_ticket() -> str:
    return secrets.token_hex(16)
