"""Asking PyTorch, in a child, what an operator is; kept beside the reproduction."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from neuronqa.domain.repro import OPERATOR_FILE
from neuronqa.errors import EnvironmentFault

DESCRIPTION_FILE: Final = "operator.json"


def describe(folder: Path, operator: str) -> None:
    """Leave beside a reproduction what PyTorch says of its operator. Raises EnvironmentFault where it says nothing."""
    file = folder / OPERATOR_FILE
    command = [
        sys.executable,
        "-m",
        "neuronqa.fixqueue.operator_child",
        operator,
        *([str(file)] if file.exists() else []),
    ]
    child = subprocess.run(command, capture_output=True, text=True)
    if child.returncode:
        said = (child.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise EnvironmentFault(f"the operator cannot be described: {said}", where=operator)
    (folder / DESCRIPTION_FILE).write_text(child.stdout, encoding="ascii")


def described(folder: Path) -> Mapping[str, Any]:
    """What was left there: `schema`, `overloads`, `meaning`, `call`."""
    found: Mapping[str, Any] = json.loads((folder / DESCRIPTION_FILE).read_bytes())
    return found
