"""A fleet on a real local Ray, led through scenes with actors that stand in for workers. Prints what it saw as JSON.

In a process of its own, because Ray reads whether it asks for a token when it is first imported.

    python -m tests.ray_scenarios [sweep]

With `sweep`, one scene with the fleet as a sweep gets it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from neuronqa.domain.job import Job
from neuronqa.errors import EnvironmentFault
from neuronqa.sweep.closed_ray import local_ray
from neuronqa.sweep.ground import LocalGround
from tests.builders import job, workload
from tests.stand_in import StandIn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neuronqa.sweep.fleet import Completion, Fleet
    from neuronqa.sweep.ray_fleet import RayFleet

PATIENCE_S = 120
Start = Callable[..., Any]


def named(name: str) -> Job:
    return job(workload(name))


def collect(fleet: Fleet, n: int) -> list[Completion]:
    until = time.monotonic() + PATIENCE_S
    found: list[Completion] = []
    while len(found) < n and time.monotonic() < until:
        found += fleet.wait(timeout=0.5)
    return sorted(found, key=lambda one: one.token)


def fate(one: Completion) -> str:
    return one.lost or " ".join(result.lost or result.workload for result in one.results or ())


def work(start: Start) -> dict[str, Any]:
    with start(workers=2) as fleet:
        facts: dict[str, Any] = {"capacity before": fleet.capacity()}
        fleet.await_first()
        while fleet.size < 2:
            fleet.wait(timeout=0.5)
        facts["capacity"] = fleet.capacity()
        sent = [named(f"w{n}") for n in range(facts["capacity"])]
        for token, one in enumerate(sent):
            fleet.submit(token, [one])
        facts["capacity when full"] = fleet.capacity()
        found = collect(fleet, len(sent))
        facts["right"] = [fate(one) for one in found] == [one.workload.hash for one in sent]
        facts["capacity after"] = fleet.capacity()
        facts["idle"] = len(fleet.wait(timeout=0))
        return facts


def layout(start: Start) -> dict[str, Any]:
    with start(workers=2) as fleet:
        fleet.await_first()
        fleet.lay_out(2)
        before = fleet.capacity()
        fleet.await_first()
        wide = {"capacity at once": before, "capacity": fleet.capacity(), "next": serve(fleet)}
        fleet.lay_out(1)
        while fleet.size < 2:
            fleet.wait(timeout=0.5)
        return {**wide, "capacity after": fleet.capacity()}


def death(start: Start) -> dict[str, Any]:
    with start() as fleet:
        fleet.await_first()
        fleet.submit(1, [named("dies")])
        fleet.submit(2, [named("waits")])
        lost = [fate(one) for one in collect(fleet, 2)]
        return {"lost": lost, "next": serve(fleet)}


def surrender(start: Start) -> dict[str, Any]:
    with start() as fleet:
        fleet.await_first()
        fleet.submit(1, [named("gives-up")])
        given_up = [fate(one) for one in collect(fleet, 1)]
        fleet.submit(2, [named("raises")])
        return {"given up": given_up, "raised": [fate(one) for one in collect(fleet, 1)], "next": serve(fleet)}


def silence(start: Start) -> dict[str, Any]:
    with start() as fleet:
        fleet.await_first()
        with patch("neuronqa.sweep.ray_fleet.patience", lambda _jobs: 1.0):
            fleet.submit(1, [named("hangs")])
            lost = [fate(one) for one in collect(fleet, 1)]
        return {"lost": lost, "next": serve(fleet)}


def serve(fleet: Fleet) -> bool:
    """Is a job that comes after the trouble done?"""
    fleet.await_first()
    one = named("willing")
    fleet.submit(99, [one])
    return [fate(done) for done in collect(fleet, 1)] == [one.workload.hash]


def no_birth(start: Start, device: str, start_s: float) -> str:
    limits = patch.multiple("neuronqa.sweep.ray_fleet", MOURNING=2, START_S=start_s, REST_S=0.1)
    with limits, start(device=device) as fleet:
        try:
            fleet.await_first()
        except EnvironmentFault as error:
            return str(error)
    return "it started"


def main() -> None:
    with local_ray(2) as environment:
        from neuronqa.sweep.ray_fleet import RayFleet

        variables = {**environment, "PYTHONPATH": str(Path.cwd())}

        @contextmanager
        def start(workers: int = 1, device: str = "willing") -> Iterator[RayFleet]:
            with patch("neuronqa.sweep.ray_fleet.CaseActor", StandIn):
                ground = LocalGround(workers=workers, environment=variables)
                fleet = RayFleet(workers, ground, {"device": device})
                try:
                    yield fleet
                finally:
                    fleet.close()

        facts = {
            "work": work(start),
            "layout": layout(start),
            "death": death(start),
            "surrender": surrender(start),
            "silence": silence(start),
            "stillborn": no_birth(start, "stillborn", 100.0),
            "sleepy": no_birth(start, "sleepy", 1.0),
        }
    print(json.dumps(facts))


def sweep() -> None:
    from neuronqa.domain.build import Prepared
    from neuronqa.sweep.local_fleet import local_fleet
    from neuronqa.sweep.request import SweepRequest
    from tests.builders import ORDER, vector

    prepared = Prepared(order=replace(ORDER, device="willing"), vector=vector(), seconds=0.0)
    actor = patch("neuronqa.worker.actor.CaseActor", StandIn)
    with actor, local_fleet(SweepRequest(catalog="none", workers=1), prepared) as fleet:
        fleet.await_first()
        fleet.submit(1, [named("dies")])
        lost = [fate(one) for one in collect(fleet, 1)]
        followed = serve(fleet)
    print(json.dumps({"lost": lost, "next": followed}))


if __name__ == "__main__":
    sweep() if sys.argv[1:] == ["sweep"] else main()
