"""A real driver on a Ray of three nodes, all on loopback, that loses a node or a worker, or gains one. Prints JSON.

    python -m tests.cluster_scenarios SCENARIO DATABASE CATALOG

The device is said to be ready and jobs are served by stand-ins: what is tested is who gets which job, and what is kept.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from neuronqa.domain.build import BuildOrder, Prepared
from neuronqa.domain.job import Job, JobResult
from neuronqa.errors import NodeUnsound
from neuronqa.sweep import controls
from neuronqa.sweep import run as run_module
from neuronqa.sweep.closed_ray import CLOSED
from neuronqa.sweep.ground import CPU, ClusterGround
from neuronqa.sweep.private_network import enter_private_network
from neuronqa.sweep.request import EVERY, SweepRequest
from neuronqa.worker.actor import versions
from tests.builders import ORDER, result, vector

NODES = 3
SLOTS = 2
JOB_S = {"joiner": 4.0}
"""So long that a node that joins half-way still finds something to do; the others need not last."""
PATIENCE_S = 120.0


class Served:
    """Takes what a CaseActor takes, passes whatever it is given, and says on which node."""

    def __init__(self, device: str, node: str = "", parcel: Any = None) -> None:
        del device
        self._node = node
        self._parcel = parcel

    def ready(self) -> dict[str, Any]:
        return {"node": self._node, "versions": versions()}

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        return [self._run(one) for one in jobs]

    def close(self) -> None:
        pass

    def _run(self, one: Job) -> JobResult:
        if self._node == told("unsound"):
            raise NodeUnsound(f"{self._node} computes wrongly: matmul in float32")
        until = time.monotonic() + PATIENCE_S
        while not told("all are here") and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(JOB_S.get(os.environ["NEURONQA_SCENARIO"], 0.05))
        return replace(result(one), node=self._node, worker=f"{self._node}/{os.getpid()}")


def tell(what: str, text: str) -> None:
    """Let everybody on every node know."""
    (Path(os.environ["NEURONQA_SCENE"]) / what).write_text(text)


def told(what: str) -> str:
    said = Path(os.environ["NEURONQA_SCENE"]) / what
    return said.read_text() if said.exists() else ""


def plant() -> None:
    """Have a node compute wrongly from now on."""
    tell("unsound", ClusterGround(resource=CPU).nodes(1)[0].name)


def ready(order: BuildOrder) -> Prepared:
    del order
    return Prepared(order=ORDER, vector=vector(), seconds=0.0)


class Meddling:
    """A display that lets something happen once so many cases are done."""

    def __init__(self, after: int, happens: Callable[[], None]) -> None:
        self._after = after
        self._happens = happens
        self.happened = False

    def stage(self, text: str) -> None:
        print(text, file=sys.stderr)

    def show(self, progress: Any) -> None:
        if progress.workers >= NODES * SLOTS:
            tell("all are here", "yes")
        if not self.happened and progress.done >= self._after:
            self.happened = True
            self._happens()


@contextmanager
def three_nodes() -> Iterator[Any]:
    """A head that runs nothing and NODES with two slots each, in a network that holds loopback alone.

    Elsewhere Ray takes 127.0.0.1 for a machine's other address, on which nothing of this listens.
    """
    if not enter_private_network():
        raise SystemExit("this machine gives no network of its own")
    os.environ.update({**CLOSED, "RAY_AUTH_TOKEN": "f" * 64, "RAY_health_check_period_ms": "1000"})
    from ray.cluster_utils import Cluster

    here = {"node_ip_address": "127.0.0.1", "include_dashboard": False}
    small: dict[str, Any] = {**here, "object_store_memory": 80 * 2**20}
    cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
    try:
        yield cluster, [cluster.add_node(num_cpus=SLOTS, **small) for _ in range(NODES)], small
    finally:
        cluster.shutdown()


def kill_a_worker() -> None:
    """One of this scene's own, with the signal no process outlives."""
    mark = f"NEURONQA_SCENE={os.environ['NEURONQA_SCENE']}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            named = (folder / "cmdline").read_bytes().startswith(b"ray::Served")
            if named and mark in (folder / "environ").read_bytes():
                os.kill(int(folder.name), signal.SIGKILL)
                return
    raise RuntimeError("no worker was found")


def main(scenario: str, database: str, catalog: str) -> dict[str, Any]:
    os.environ.update(NEURONQA_SCENE=str(Path(database).parent), NEURONQA_SCENARIO=scenario)
    with three_nodes() as (cluster, nodes, small):
        happens = {
            "node": lambda: cluster.remove_node(nodes[0], allow_graceful=False),
            "worker": kill_a_worker,
            "joiner": lambda: cluster.add_node(num_cpus=SLOTS, **small) and None,
            "unsound": plant,
        }[scenario]
        display = Meddling(20, happens)
        with (
            patch("neuronqa.worker.actor.CaseActor", Served),
            patch.object(run_module, "prepare", ready),
            patch.object(controls, "load_controls", lambda *_: []),
        ):
            from neuronqa.sweep.cluster_fleet import cluster_fleet
            from neuronqa.sweep.run import run_sweep

            request = SweepRequest(catalog=catalog, policy="quick", workers=EVERY, address=cluster.address)
            swept = run_sweep(request, database, display, cluster_fleet)
    return {"name": swept.name, "state": swept.state, "happened": display.happened}


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
