"""A fleet on this machine alone: a closed Ray of our own, gone when the sweep is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from neuronqa.domain.build import Prepared
from neuronqa.sweep.closed_ray import local_ray
from neuronqa.sweep.fleet import Fleet
from neuronqa.sweep.ground import LocalGround
from neuronqa.sweep.private_network import enter_private_network
from neuronqa.sweep.request import EVERY, SweepRequest, default_workers


@contextmanager
def local_fleet(request: SweepRequest, prepared: Prepared, *, private: bool = True) -> Iterator[Fleet]:
    """A fleet on a closed local Ray; `private`: in a network of its own, from which nothing else can be reached."""
    workers = default_workers() if request.workers >= EVERY else request.workers
    if private:
        enter_private_network()
    # Ray prints what befalls its workers on stdout, where somebody may expect JSON; each loss comes back as one anyway.
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), local_ray(workers) as environment:
        from neuronqa.sweep.ray_fleet import RayFleet

        ground = LocalGround(workers=workers, environment=environment)
        fleet = RayFleet(workers, ground, {"device": prepared.order.device})
        try:
            yield fleet
        finally:
            fleet.close()
