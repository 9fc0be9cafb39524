"""Has a case's model and an operator's arguments extracted: a reference child, and a device child that leaves them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Final

from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Mode, Variant
from neuronqa.domain.policy import Limits
from neuronqa.domain.repro import CALLED_FILE, CONFIG_FILE, LOSS_FILE, MODEL_FILE, OPERATOR_FILE
from neuronqa.domain.workload import Workload
from neuronqa.worker import folders
from neuronqa.worker.actor import outfit
from neuronqa.worker.supervisor import Supervisor

FILES: Final = (OPERATOR_FILE, CALLED_FILE, MODEL_FILE, CONFIG_FILE, LOSS_FILE)
LIMITS: Final = Limits(deadline_s=120.0, memory_mb=8192)


def extract(
    workload: Workload, variant: Variant, order: BuildOrder, operator: str, dtype: str, target: Path
) -> frozenset[str]:
    """Copy to `target` what could be extracted, and return the names of the files. To be called on the main thread.

    What the device does on the way does not matter: each file is written before the device can die of it.
    """
    work = folders.WorkFolder()
    supervisor = Supervisor(work.path, outfit(order.device))
    eager = str(replace(variant, mode=Mode.EAGER))
    reference, out = work.path / "reference", work.path / "extraction"
    asked = {"workload": workload.to_json(), "steps": 1, "variant": eager}
    told = {"order": order.to_json(), "reference": str(reference), "operator": operator, "dtype": dtype}
    try:
        supervisor.share_for(workload)
        supervisor.run("reference", {**asked, "out": str(reference)}, LIMITS)
        supervisor.run("extraction", {**asked, **told, "out": str(out)}, LIMITS)
        found = frozenset(name for name in FILES if (out / name).is_file() and not (out / name).is_symlink())
        for name in found:
            shutil.copyfile(out / name, target / name)
        return found
    finally:
        supervisor.close()
        work.close()
