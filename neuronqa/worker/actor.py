"""A worker: runs jobs one after the other, each child apart, and returns values. It loads no torch and no device."""

from __future__ import annotations

import importlib.metadata
import itertools
import logging
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from neuronqa.domain.case import Mode, Variant
from neuronqa.domain.job import AttemptResult, Job, JobResult
from neuronqa.domain.observation import Exit
from neuronqa.domain.policy import Limits
from neuronqa.errors import NeuronQAError, NodeUnsound
from neuronqa.worker import exchange, folders, zygote
from neuronqa.worker.folders import WorkFolder
from neuronqa.worker.judging import Judge
from neuronqa.worker.parcel import Parcel, Unpacked
from neuronqa.worker.runner import JobRunner, Reference
from neuronqa.worker.shelf import Shelf
from neuronqa.worker.supervisor import Supervisor

PRELOAD: Final = (
    "torch",
    "torch._dynamo",
    "torch._functorch.aot_autograd",
    "transformers",
    "transformers.modeling_utils",
    "transformers.models.auto.modeling_auto",
    "neuronqa.worker.roles",
)
OUTFITS: Final = {
    "neuron": zygote.Settings(
        preload=(*PRELOAD, "neuronqa.device.neuron.adapter"), warm="neuronqa.device.neuron.warm:warm_compile"
    ),
    "cpu:inductor": zygote.Settings(preload=PRELOAD, warm="neuronqa.device.inductor:warm_compile"),
}

CANARY_LIMITS: Final = Limits(deadline_s=20.0, memory_mb=512)

log = logging.getLogger(__name__)


def outfit(device: str) -> zygote.Settings:
    """What a zygote imports, and runs once. No device is loaded in it: each child loads the build it is ordered."""
    return OUTFITS.get(device, zygote.Settings(preload=PRELOAD, show_accelerators=not device.startswith("cpu")))


def versions() -> dict[str, str]:
    """What can change a verdict and is this machine's; results of different versions are never mixed."""
    packages = {name: importlib.metadata.version(name) for name in ("torch", "transformers", "numpy")}
    return {"python": platform.python_version(), "machine": platform.machine(), **packages}


class CaseActor:
    """One device slot. To be used on the main thread of its process, one call at a time."""

    def __init__(
        self,
        device: str = "neuron",
        settings: zygote.Settings | None = None,
        node: str = "",
        parcel: Parcel | None = None,
    ) -> None:
        """`node`: the name that results carry of the machine this runs on, where it has one among others; `parcel`:
        what orders name, where that was made on another machine."""
        self._work = WorkFolder()
        self._unpacked = Unpacked(parcel or Parcel({}), self._work.path / "parcel")
        self._supervisor = Supervisor(self._work.path, settings or outfit(device))
        self._judge = Judge()
        self._shelf = Shelf(self._work.path / "references")
        self._node = node or platform.node()
        self._name = f"{self._node}/{os.getpid()}"
        self._numbers = itertools.count(1)

    def ready(self) -> dict[str, Any]:
        """Start what takes long to start, and tell of this worker. Raises EnvironmentFault if it cannot start."""
        self._judge.start()
        handle = self._supervisor.start()
        return {
            "node": self._node,
            "worker": self._name,
            "versions": versions(),
            "confinement": handle.confinement.value,
            "start_s": handle.start_s,
        }

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        """Return a result per job, in order. What stops one job stops no other: its result says that it is lost.

        Raises NodeUnsound, and returns nothing, if this machine gets arithmetic wrong.
        """
        results = [self._run(job) for job in jobs]
        self._listen()
        return results

    def _listen(self) -> None:
        """Raises NodeUnsound if the canary says so. That it could not sing is no news of the machine's arithmetic."""
        out = self._work.path / f"canary-{next(self._numbers)}"
        wrong = ""
        try:
            self._supervisor.run("canary", {"out": str(out)}, CANARY_LIMITS)
            wrong = (out / exchange.CANARY_FILE).read_text()[:80]
        except (OSError, NeuronQAError) as error:
            log.warning("The canary was not heard: %s.", error, extra={"action": "canary_unheard"})
        finally:
            folders.remove(out)
        if wrong:
            raise NodeUnsound(f"{self._node} computes wrongly: {wrong}")

    def places(self, job: Job) -> dict[str, Any]:
        """Where in the source the job's workload calls each operator on the device its first ticket orders: operator ->
        [file, line, function, progress]. Empty where that cannot be told."""
        folder = self._work.path / f"job-{next(self._numbers)}"
        folder.mkdir(mode=0o700)
        try:
            runner = JobRunner(self._supervisor, self._judge, job, folder)
            variant = replace(job.tickets[0].variant, mode=Mode.EAGER)
            return runner.places(job.tickets[0], self._reference(job, variant, runner))
        finally:
            folders.remove(folder)

    @property
    def folder(self) -> Path:
        """Where children find what they are given, below which every `out` of :meth:`play` lies."""
        return self._work.path

    def play(self, role: str, request: Mapping[str, Any], limits: Limits) -> Exit:
        """Play a role that the outfit's entry knows beside those of cases, in a child of its own."""
        return self._supervisor.run(role, request, limits)

    def forget(self) -> None:
        """Make every reference anew from now on: a file that a workload imports has changed."""
        self._shelf.clear()

    def close(self) -> None:
        self._supervisor.close()
        self._judge.close()
        self._work.close()

    def _run(self, job: Job) -> JobResult:
        folder = self._work.path / f"job-{next(self._numbers)}"
        try:
            folder.mkdir(mode=0o700)
            here = replace(job, tickets=tuple(replace(t, order=self._unpacked.here(t.order)) for t in job.tickets))
            return self._work_through(here, JobRunner(self._supervisor, self._judge, here, folder))
        except Exception as error:  # a fault in one job must not cost the others
            why = str(error) if isinstance(error, NeuronQAError) else f"{type(error).__name__}: {error}"
            log.exception("A job was lost.", extra={"action": "job_lost", "workload": job.workload.hash})
            return JobResult(workload=job.workload.hash, lost=why, node=self._node, worker=self._name)
        finally:
            folders.remove(folder)
            self._shelf.trim()

    def _work_through(self, job: Job, runner: JobRunner) -> JobResult:
        self._supervisor.share_for(job.workload)
        references: dict[Variant, Reference] = {}
        attempts: list[AttemptResult] = []
        for ticket in job.tickets:
            key = replace(ticket.variant, mode=Mode.EAGER)
            if key not in references:
                references[key] = self._reference(job, key, runner)
            attempts += runner.attempts(ticket, references[key])
        return JobResult(
            workload=job.workload.hash,
            references=tuple(reference.result for reference in references.values()),
            attempts=tuple(attempts),
            node=self._node,
            worker=self._name,
            versions=versions(),
        )

    def _reference(self, job: Job, variant: Variant, runner: JobRunner) -> Reference:
        steps = job.thresholds.train_steps
        return self._shelf.reference(job.workload, variant, steps, partial(runner.reference, variant))
