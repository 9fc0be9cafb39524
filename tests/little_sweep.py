"""A whole sweep in a process of its own, with a scripted fleet: to be killed, interrupted and resumed from outside.

    python -m tests.little_sweep DATABASE CATALOG PACE STALL [SWEEP]

Each job takes PACE seconds; after STALL jobs (0: never) no worker answers any more. With SWEEP that one is resumed.
The device is said to be ready, for no job reaches it, and no controls are planted, so that jobs can be counted.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

from neuronqa.domain.build import BuildOrder, Prepared
from neuronqa.domain.job import Job, JobResult
from neuronqa.sweep import controls
from neuronqa.sweep import run as run_module
from neuronqa.sweep.fleet import Completion, Fleet
from neuronqa.sweep.request import SweepRequest
from neuronqa.sweep.run import resume_sweep, run_sweep
from tests.builders import result, vector
from tests.scripted import Quiet, ScriptedFleet


class Stalling(ScriptedFleet):
    """Serves so many jobs, then none."""

    def __init__(self, pace: float, stall: int) -> None:
        super().__init__(self._serve)
        self._pace = pace
        self._parent = os.getppid()
        self._left = stall or sys.maxsize

    def _serve(self, job: Job, _before: int) -> JobResult | str:
        time.sleep(self._pace)
        return result(job)

    def wait(self, timeout: float) -> Sequence[Completion]:
        if not self._left:
            if os.getppid() != self._parent:
                raise SystemExit("nobody is left to kill this sweep")
            time.sleep(timeout)
            return []
        done = super().wait(timeout)
        self._left -= len(done)
        return done


def ready(order: BuildOrder) -> Prepared:
    return Prepared(order=order, vector=vector(), seconds=0.0)


def main() -> None:
    with patch.object(run_module, "prepare", ready), patch.object(controls, "load_controls", lambda *_: []):
        print(json.dumps(sweep(*sys.argv[1:])))


def sweep(database: str, catalog: str, pace: str, stall: str, resumed: str = "") -> dict[str, str]:

    @contextmanager
    def fleet(_request: SweepRequest, _prepared: Prepared) -> Iterator[Fleet]:
        yield Stalling(float(pace), int(stall))

    if resumed:
        swept = resume_sweep(resumed, database, None, Quiet(), fleet)
    else:
        request = SweepRequest(catalog=catalog, policy="quick", workers=2)
        swept = run_sweep(request, database, Quiet(), fleet)
    return {"name": swept.name, "state": swept.state}


if __name__ == "__main__":
    main()
