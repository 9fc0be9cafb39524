"""Fills a reference bundle: runs workloads on a device that is trusted, and keeps what it left."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Mode, Variant
from neuronqa.domain.outcome import Check, Standing
from neuronqa.domain.policy import Limits, Thresholds
from neuronqa.domain.workload import Workload
from neuronqa.worker import bundle as bundles
from neuronqa.worker import folders
from neuronqa.worker.actor import outfit
from neuronqa.worker.bundle import Bundle
from neuronqa.worker.judge import judge_device, judge_reference
from neuronqa.worker.supervisor import Supervisor

LIMITS: Final = Limits()
NO_REFERENCE: Final = "the CPU reference is unfit"
NOT_RUN: Final = "it did not run to the end"


class Recorder:
    """Holds a zygote. To be used on the main thread of its process."""

    def __init__(self, order: BuildOrder, bundle: Bundle) -> None:
        self._order = order
        self._bundle = bundle
        self._work = folders.WorkFolder()
        self._supervisor = Supervisor(self._work.path, outfit(order.device))

    def close(self) -> None:
        self._supervisor.close()
        self._work.close()

    def record(self, workload: Workload, variant: Variant) -> str:
        """Run one workload and keep what it left. Returns what parity says of it, or why nothing was kept.

        A result that parity calls wrong is kept too: it is this device's, and says so.
        """
        if variant.mode is not Mode.EAGER:
            raise ValueError("a bundle holds eager runs; compiled ones are compared with the same")
        self._supervisor.share_for(workload)
        home = self._work.path / workload.hash
        home.mkdir(mode=0o700)
        try:
            return self._record(home, workload, variant)
        finally:
            folders.remove(home)

    def _record(self, home: Path, workload: Workload, variant: Variant) -> str:
        thresholds = Thresholds()
        reference, device = home / "reference", home / "device"
        request = {"workload": workload.to_json(), "variant": str(variant), "steps": 1}
        left = self._supervisor.run("reference", {**request, "out": str(reference)}, LIMITS)
        if any(one.outcome.standing is not Standing.PASS for one in judge_reference(reference, left)):
            return NO_REFERENCE
        asked = {**request, "order": self._order.to_json(), "reference": str(reference), "out": str(device)}
        left = self._supervisor.run("device", asked, LIMITS)
        found = {one.check: one.outcome for one in judge_device(reference, device, left, variant, thresholds)}
        if found[Check.RUN].standing is not Standing.PASS:
            return NOT_RUN
        bundles.keep(self._bundle, workload.hash, variant, reference, device)
        return str(found[Check.PARITY])
