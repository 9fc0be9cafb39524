"""The audit of architectures, made by a child process: only it may import torch and transformers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Final

from neuronqa.errors import BadInput, EnvironmentFault

AUDIT: Final = (sys.executable, "-m", "neuronqa.workload.audit")
_SAMPLE: Final = re.compile(r"[1-9]\d{0,5}@\d{1,9}")


def audit(sample: str = "", model_types: Sequence[str] = (), workers: int = 2) -> dict[str, Any]:
    """Build, run and train every architecture, or a sample `N@SEED`, or those of some model types; return the figures.

    Progress goes to standard error. Raises BadInput for a sample that is none, EnvironmentFault when the child dies.
    """
    if sample and not _SAMPLE.fullmatch(sample):
        raise BadInput(f"not a sample: {sample[:40]!r}", hint="a sample is N@SEED, as 200@7")
    command = [*AUDIT, "--workers", str(workers), *(["--sample", sample] if sample else [])]
    for name in model_types:
        command += ["--type", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise EnvironmentFault(f"the audit ended with code {done.returncode}", hint="run `neuronqa doctor`")
    figures = json.loads(done.stdout)
    assert isinstance(figures, dict)
    return figures
