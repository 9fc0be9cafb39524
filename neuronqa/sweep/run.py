"""A sweep from end to end: prepare the device, plan the catalog, execute, audit, settle."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from typing import Protocol

from sqlalchemy import Engine

from neuronqa import catalog as catalogs
from neuronqa.catalog.select import Results
from neuronqa.db import queries
from neuronqa.db.engine import check_file, database_url, driver_lock, open_engine, sweep_lock
from neuronqa.db.store import Store, SweepHeader
from neuronqa.device.prepare import prepare
from neuronqa.domain.build import Prepared
from neuronqa.domain.policy import Policy
from neuronqa.errors import BadInput, EnvironmentFault
from neuronqa.sweep.agenda import Agenda, load_agenda
from neuronqa.sweep.census import statuses_of
from neuronqa.sweep.conclude import conclude
from neuronqa.sweep.driver import Display
from neuronqa.sweep.fleet import Fleet
from neuronqa.sweep.interruption import on_interrupt
from neuronqa.sweep.leg import Leg
from neuronqa.sweep.plan import make_plan
from neuronqa.sweep.policies import load_policy
from neuronqa.sweep.request import EVERY, SweepRequest
from neuronqa.sweep.reuse import carry_over, terms


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


def run_sweep(
    request: SweepRequest,
    db: str | None,
    display: SweepDisplay,
    make_fleet: FleetMaker,
    results: Results | None = None,
) -> Swept:
    """Plan and execute a new sweep. Raises BadInput or EnvironmentFault before anything is executed.

    `results` answers the selectors over earlier sweeps, of which this layer knows nothing.
    """
    policy = load_policy(request.policy)
    with _database(db) as engine:
        catalog = catalogs.open(request.catalog, select=request.select, statuses=statuses_of, results=results)
        if catalog.notice:
            display.stage(catalog.notice)
        store = Store(engine)
        prepared = _prepare(request, display)
        display.stage(
            f"Planning {catalog.info.registered:,} entries of {catalog.info.name} ({catalog.info.source.value})"
        )
        plan_id = make_plan(catalog, store)
        header = _header(request, policy, plan_id, prepared)
        sweep_id = store.create_sweep(header)
        with sweep_lock(engine, sweep_id):
            store.take_up(sweep_id)
            agenda = load_agenda(engine, header.name, request, policy)
            store.plan_cases(sweep_id, agenda.cases())
            if not request.fresh:
                for line in carry_over(engine, store, agenda.sweep, prepared.vector).lines():
                    display.stage(line)
            return _execute(agenda, store, prepared, display, make_fleet)


def resume_sweep(
    name: str,
    db: str | None,
    workers: int | None,
    display: SweepDisplay,
    make_fleet: FleetMaker,
    address: str | None = None,
) -> Swept:
    """Go on where a sweep was interrupted: every planned case without a result, then controls and audits."""
    with _database(db, create=False) as engine:
        with engine.connect() as connection:
            row = queries.sweep(connection, name)
        request = SweepRequest.kept(row.options, workers, address)
        prepared = _prepare(request, display)
        if prepared.vector.hash != row.build_hash:
            raise BadInput(
                "the device build has changed since this sweep began",
                where=row.name,
                hint="start a new sweep; results of two builds are never mixed",
            )
        store = Store(engine)
        with sweep_lock(engine, row.id):
            store.take_up(row.id)
            store.reopen_sweep(row.id)
            agenda = load_agenda(engine, row.name, request, Policy.from_json(row.policy))
            return _execute(agenda, store, prepared, display, make_fleet)


def _prepare(request: SweepRequest, display: SweepDisplay) -> Prepared:
    display.stage(f"Preparing device {request.device} ({request.profile})")
    return prepare(request.order)


def _header(request: SweepRequest, policy: Policy, plan_id: int, prepared: Prepared) -> SweepHeader:
    return SweepHeader(
        name=time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + secrets.token_hex(2),
        plan_id=plan_id,
        build=prepared.vector,
        device=request.device,
        policy=policy,
        policy_json=policy.to_json(),
        options=asdict(request),
        terms=terms(policy),
        seed=request.seed,
        cores=request.workers,
    )


def _execute(agenda: Agenda, store: Store, prepared: Prepared, display: SweepDisplay, make_fleet: FleetMaker) -> Swept:
    address, workers = agenda.request.address, agenda.request.workers
    display.stage(f"Starting workers on {address}" if address else f"Starting {workers} workers")
    with make_fleet(agenda.request, prepared) as fleet:
        fleet.await_first()
        began = time.monotonic()
        leg = Leg(agenda, store, prepared.order, display, fleet)
        with on_interrupt(leg.driver.stop), _resumable(agenda.sweep.name):
            leg.run()
    name = agenda.sweep.name
    cores = leg.driver.progress.most_workers if workers >= EVERY else 0
    store.finish_sweep(agenda.sweep.id, leg.state, time.monotonic() - began, leg.summary(), cores)
    conclude(store, name)
    return Swept(name=name, state=leg.state)


@contextmanager
def _resumable(name: str) -> Iterator[None]:
    """What stops a sweep half-way also says how to go on: everything that was written is kept."""
    try:
        yield
    except EnvironmentFault as fault:
        goes_on = f"then go on with `neuronqa sweep --resume {name}`"
        hint = f"{fault.hint or 'put that right'}, {goes_on}"
        raise EnvironmentFault(fault.what, where=fault.where, hint=hint) from fault


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
