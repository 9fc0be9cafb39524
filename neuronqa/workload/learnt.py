"""What repair found out is kept in the cache, one small file a workload, so that it is found out once."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import transformers

from neuronqa.cachedir import cache_dir
from neuronqa.errors import EnvironmentFault
from neuronqa.workload.inputs.adaptation import Adaptation
from neuronqa.workload.version import BUILDER


def recall(name: str) -> Adaptation | None:
    """The adaptation kept for the workload of hash `name`; None where there is none, or none that can be read.

    A cache that may only be read will do.
    """
    try:
        return Adaptation.from_json(json.loads(_path(name).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, EnvironmentFault):
        return None


def keep(name: str, adaptation: Adaptation) -> None:
    """Keep an adaptation. A cache that cannot be written is done without: repair then happens again."""
    try:
        path = _path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(adaptation.to_json(), file)
        Path(temporary).replace(path)
    except (OSError, EnvironmentFault):
        return


def _path(name: str) -> Path:
    named = os.environ.get("NEURONQA_CACHE")
    cache = Path(named) if named else cache_dir()
    return cache / "learnt" / f"{BUILDER}-{transformers.__version__}" / f"{name}.json"
