"""A whole sweep in a process of its own, with a scripted fleet: to be killed, interrupted and resumed from outside.

    python -m tests.little_sweep DATABASE CATALOG PACE STALL [SWEEP]

Each job takes PACE seconds; after STALL jobs (0: never) no worker answers any more. With SWEEP that one is resumed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from neuronqa.device.prepare import Prepared
from neuronqa.domain.job import Job, JobResult
from neuronqa.sweep.fleet import Completion, Fleet
from neuronqa.sweep.run import SweepRequest, resume_sweep, run_sweep
from tests.builders import result
from tests.scripted import Quiet, ScriptedFleet


class Stalling(ScriptedFleet):
    """Serves so many jobs, then none."""

    def __init__(self, pace: float, stall: int) -> None:
        super().__init__(self._serve)
        self._pace = pace
        self._left = stall or sys.maxsize

    def _serve(self, job: Job, _before: int) -> JobResult | str:
        time.sleep(self._pace)
        return result(job)

    def wait(self, timeout: float) -> Sequence[Completion]:
        if not self._left:
            time.sleep(timeout)
            return []
        done = super().wait(timeout)
        self._left -= len(done)
        return done


def main() -> None:
    database, catalog, pace, stall, *resumed = sys.argv[1:]

    @contextmanager
    def fleet(_request: SweepRequest, _prepared: Prepared) -> Iterator[Fleet]:
        yield Stalling(float(pace), int(stall))

    if resumed:
        swept = resume_sweep(resumed[0], database, None, Quiet(), fleet)
    else:
        request = SweepRequest(catalog=catalog, policy="quick", device="cpu", profile="", workers=2)
        swept = run_sweep(request, database, Quiet(), fleet)
    print(json.dumps({"name": swept.name, "state": swept.state}))


if __name__ == "__main__":
    main()
