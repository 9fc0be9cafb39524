"""A fleet on a Ray cluster that is there already, and maybe others' as well: nothing of it is started or stopped."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, Final

from neuronqa.domain.build import Prepared
from neuronqa.errors import EnvironmentFault
from neuronqa.sweep.fleet import Fleet
from neuronqa.sweep.ground import ACCELERATOR, CPU, ClusterGround, Node
from neuronqa.sweep.request import SweepRequest
from neuronqa.worker.actor import versions
from neuronqa.worker.parcel import Parcel

SIMULATED: Final = ("neuron", "cpu")
"""Devices that need no more than a CPU."""
ANSWER_S: Final = 60.0
"""A node on which nothing starts for so long does not answer."""
_HOW: Final = "give HOST:PORT of its head, or auto, and RAY_AUTH_TOKEN if it asks for one"


@contextmanager
def cluster(address: str) -> Iterator[None]:
    """Connect to the cluster at `address`. Raises EnvironmentFault if that cannot be done."""
    import ray

    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
    except Exception as error:  # Ray raises what its parts raise
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise EnvironmentFault(f"the Ray cluster cannot be reached: {reason}", where=address, hint=_HOW) from error
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def cluster_fleet(request: SweepRequest, prepared: Prepared) -> Iterator[Fleet]:
    """A fleet on the cluster at `request.address`.

    Each worker is sent the device that was prepared here, by content; one whose torch, transformers or Python differ
    from this machine's, where the device was built and the plan made, is refused with its node.
    """
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), cluster(request.address):
        import ray

        from neuronqa.sweep.ray_fleet import RayFleet

        settings = {"device": prepared.order.device, "parcel": ray.put(Parcel.of(prepared.order))}
        fleet = RayFleet(request.workers, ClusterGround(resource=resource_of(request.device)), settings, fit)
        try:
            yield fleet
        finally:
            fleet.close()


def resource_of(device: str) -> str:
    """What a rank on this device takes one of."""
    return CPU if device.partition(":")[0] in SIMULATED else ACCELERATOR


def fit(told: Mapping[str, Any]) -> str:
    """Why a worker's results may not be mixed with those of this machine's plan and build; empty if they may."""
    ours, theirs = versions(), told["versions"]
    apart = [f"{name} {theirs.get(name)} there, {ours[name]} here" for name in ours if theirs.get(name) != ours[name]]
    return f"another build: {'; '.join(apart)}" if apart else ""


def inspect(address: str, resource: str = CPU) -> list[tuple[Node, str]]:
    """Every node of the cluster at `address` that could work, and why it may not; empty if it may.

    Raises EnvironmentFault if the cluster cannot be reached.
    """
    with cluster(address):
        import ray

        ground = ClusterGround(resource=resource)
        asked = {}
        for node in ground.nodes(1):
            options = {**ground.options(1, node), "num_cpus": 0, "max_retries": 0}
            asked[ray.remote(**options)(_tell).remote()] = node
        done, _ = ray.wait(list(asked), num_returns=len(asked), timeout=ANSWER_S) if asked else ([], [])
        return [(node, _word(call) if call in done else "it does not answer") for call, node in asked.items()]


def _tell() -> dict[str, Any]:
    """Runs on a node."""
    return {"versions": versions()}


def _word(call: Any) -> str:
    import ray
    from ray.exceptions import RayError

    try:
        return fit(ray.get(call))
    except RayError as error:  # neuronqa is not installed there, or torch is not
        return (str(error).strip().splitlines() or [type(error).__name__])[-1]
