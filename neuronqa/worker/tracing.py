"""Makes a case's timeline: a reference child, and a device child that records it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Mode, Variant
from neuronqa.domain.observation import Exit
from neuronqa.domain.outcome import Standing
from neuronqa.domain.policy import Limits
from neuronqa.domain.workload import Workload
from neuronqa.errors import BadInput
from neuronqa.worker import folders
from neuronqa.worker.actor import outfit
from neuronqa.worker.exchange import read_observation
from neuronqa.worker.judge import judge_reference
from neuronqa.worker.supervisor import Supervisor

TRACE_FILE: Final = "trace.json"
LIMITS: Final = Limits(deadline_s=600.0, memory_mb=8192)


def trace_of(workload: Workload, variant: Variant, order: BuildOrder) -> dict[str, Any]:
    """Run one step of `workload` under the timeline, in children of its own. To be called on the main thread.

    A run that the device ended early leaves the trace of what it did, and `otherData.failure` says what ended it.
    Raises BadInput where there is nothing to trace: the CPU cannot run it either, or the child died.
    """
    work = folders.WorkFolder()
    supervisor = Supervisor(work.path, outfit(order.device))
    try:
        supervisor.share_for(workload)
        return _traced(supervisor, work.path, workload, variant, order)
    finally:
        supervisor.close()
        work.close()


def _traced(
    supervisor: Supervisor, home: Path, workload: Workload, variant: Variant, order: BuildOrder
) -> dict[str, Any]:
    reference, out = home / "reference", home / "timeline"
    asked = {"workload": workload.to_json(), "steps": 1}
    eager = str(replace(variant, mode=Mode.EAGER))
    left = supervisor.run("reference", {**asked, "variant": eager, "out": str(reference)}, LIMITS)
    unfit = [one for one in judge_reference(reference, left) if one.outcome.standing is not Standing.PASS]
    if unfit:
        raise BadInput(f"the CPU cannot run this case either: {unfit[0].outcome}", hint="only what runs has a timeline")
    told = {"variant": str(variant), "order": order.to_json(), "reference": str(reference), "out": str(out)}
    ended = supervisor.run("timeline", {**asked, **told}, LIMITS)
    try:
        found: dict[str, Any] = json.loads((out / TRACE_FILE).read_text(encoding="utf-8"))
    except OSError:
        raise BadInput(
            f"the run left no timeline: {_ending(ended)}", hint="see what a sweep says of the case"
        ) from None
    observation = read_observation(out)
    if observation is not None and observation.failure is not None:
        found["otherData"]["failure"] = asdict(observation.failure) | {"traceback": ""}
    return found


def _ending(ended: Exit) -> str:
    if ended.timed_out:
        return "its time was up"
    return ended.fault or ended.signal or f"exit code {ended.code}"
