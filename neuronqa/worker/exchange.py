"""The files by which children and judge exchange what they saw. NumPy and JSON only: the judge loads no torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from neuronqa.domain.identity import canonical_json, relaxed
from neuronqa.domain.observation import (
    ADAPTATION_FILE,
    OBSERVATION_FILE,
    OBSERVATION_SCHEMA,
    TENSOR_FILE,
    Observation,
    from_json,
)

PLACES_FILE: Final = "places.json"
CANARY_FILE: Final = "canary.txt"

Arrays = dict[str, np.ndarray[Any, Any]]


def write_observation(folder: Path, observation: Observation) -> None:
    """Write atomically, so that a child that dies while writing leaves the earlier file or none."""
    text = canonical_json({"schema_version": OBSERVATION_SCHEMA, **asdict(observation)})
    part = folder / f"{OBSERVATION_FILE}.part"
    part.write_text(text, encoding="ascii")
    part.replace(folder / OBSERVATION_FILE)


def rank_folders(folder: Path) -> list[Path]:
    """The folders of a case's ranks below its own, in order; none for a case of one."""
    found = folder.glob("rank.*")
    return sorted(found, key=lambda one: int(one.name.removeprefix("rank.")))


def read_observation(folder: Path) -> Observation | None:
    """Return what a child wrote, or None where it wrote nothing. Raises ValueError for another schema.

    Of ranks the first that failed speaks for all, else the first; the dtypes are everybody's.
    """
    ranks = [_read_observation(one) for one in rank_folders(folder)]
    if not ranks:
        return _read_observation(folder)
    known = [one for one in ranks if one is not None]
    if len(known) < len(ranks):
        return None
    speaks = next((one for one in known if one.failure is not None), known[0])
    return replace(speaks, dtypes={name: dtype for one in known for name, dtype in one.dtypes.items()})


def _read_observation(folder: Path) -> Observation | None:
    try:
        text = (folder / OBSERVATION_FILE).read_text(encoding="ascii")
    except FileNotFoundError:
        return None
    value = relaxed(json.loads(text))
    version = value.pop("schema_version", None)
    if version != OBSERVATION_SCHEMA:
        raise ValueError(f"observation schema {version!r} in {folder}, expected {OBSERVATION_SCHEMA}")
    return cast(Observation, from_json(Observation, value))


def write_adaptation(folder: Path, adaptation: Mapping[str, Any]) -> None:
    (folder / ADAPTATION_FILE).write_text(canonical_json(adaptation), encoding="ascii")


def read_adaptation(folder: Path) -> dict[str, Any] | None:
    """Return what a reference found out while it was built, or None where it found out nothing."""
    try:
        text = (folder / ADAPTATION_FILE).read_text(encoding="ascii")
    except FileNotFoundError:
        return None
    return cast(dict[str, Any], relaxed(json.loads(text))) or None


def write_places(folder: Path, places: Mapping[str, Any]) -> None:
    (folder / PLACES_FILE).write_text(canonical_json(places), encoding="ascii")


def read_places(folder: Path) -> dict[str, Any]:
    """Return where a model calls each operator, or nothing where no child left anything that can be read."""
    try:
        found = json.loads((folder / PLACES_FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray[Any, Any]], metadata: Mapping[str, str] = {}) -> None:
    """Write atomically; safetensors wants every array contiguous."""
    part = path.with_name(f"{path.name}.part")
    save_file({name: np.asarray(array, order="C") for name, array in arrays.items()}, part, dict(metadata))
    part.replace(path)


def read_arrays(path: Path) -> Arrays:
    """Return every array in `path`, or nothing where there is no such file."""
    if not path.exists():
        return {}
    with safe_open(path, framework="np") as handle:
        return {name: handle.get_tensor(name) for name in handle.keys()}  # noqa: SIM118 - not a mapping


def read_metadata(path: Path) -> dict[str, str]:
    with safe_open(path, framework="np") as handle:
        return dict(handle.metadata() or {})


def read_tensors(folder: Path) -> Arrays:
    """Every tensor a child left, or its ranks did."""
    arrays = read_arrays(folder / TENSOR_FILE)
    for rank in rank_folders(folder):
        arrays |= read_arrays(rank / TENSOR_FILE)
    return arrays
