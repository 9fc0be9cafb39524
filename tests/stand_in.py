"""An actor in the place of a worker: it does to a job what the job's workload is named for."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from neuronqa.domain.job import Job, JobResult
from neuronqa.worker.parcel import Parcel
from tests.builders import result


class StandIn:
    """Takes what a CaseActor takes. `device` is the name of how it starts."""

    def __init__(self, device: str, node: str = "", parcel: Parcel | None = None) -> None:
        self._device = device
        self._node = node
        self._parcel = parcel

    def ready(self) -> dict[str, str]:
        if self._device == "stillborn":
            raise RuntimeError("no torch\nhere")
        if self._device == "sleepy":
            time.sleep(600)
        return {}

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        return [self._run(job) for job in jobs]

    def close(self) -> None:
        pass

    def _run(self, job: Job) -> JobResult:
        name = job.workload.spec.family
        if name == "dies":
            os._exit(1)
        if name == "hangs":
            time.sleep(600)
        if name == "raises":
            raise ValueError("a fault of ours")
        if name == "gives-up":
            return JobResult(workload=job.workload.hash, lost="a reference was changed")
        return result(job)
