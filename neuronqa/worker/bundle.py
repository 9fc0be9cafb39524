"""Reference bundles: what another device (an NVIDIA one, say) made of workloads, kept so that parity can say whether
the device under test is further from float64 than that one is.

A bundle is a folder: `bundle.json` says what device it was, and `WORKLOAD/DTYPE-PHASE/` holds what the device child
left, with the digest of the weights and inputs it started from. Another start (another torch, another recipe) is not
compared.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from neuronqa.domain.case import Variant
from neuronqa.domain.identity import canonical_json
from neuronqa.domain.observation import INPUT_FILE, OBSERVATION_FILE, TENSOR_FILE, WEIGHT_FILE
from neuronqa.errors import BadInput
from neuronqa.worker import folders

MANIFEST: Final = "bundle.json"
START: Final = "start.sha256"
SCHEMA: Final = 1


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """A bundle and the device that made it."""

    folder: Path
    device: str
    versions: Mapping[str, str]


def create(folder: Path, device: str, versions: Mapping[str, str]) -> Bundle:
    """Begin a bundle, or go on with one. Raises BadInput where there is one of another device or other versions."""
    if (folder / MANIFEST).exists():
        known = load(folder)
        if (known.device, dict(known.versions)) != (device, dict(versions)):
            raise BadInput(f"the bundle was made by {known.device} with other versions", where=str(folder))
        return known
    folder.mkdir(parents=True, exist_ok=True)
    facts = {"schema_version": SCHEMA, "device": device, "versions": dict(versions)}
    (folder / MANIFEST).write_text(canonical_json(facts), encoding="ascii")
    return load(folder)


def load(folder: Path) -> Bundle:
    """Raises BadInput for what is no bundle."""
    try:
        facts: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="ascii"))
        if facts["schema_version"] != SCHEMA:
            raise ValueError(f"schema {facts['schema_version']!r}")
        return Bundle(folder=folder, device=str(facts["device"]), versions=dict(facts["versions"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        hint = "make one with `neuronqa reference record`"
        raise BadInput(f"this is no reference bundle: {error}", where=str(folder), hint=hint) from error


def keep(bundle: Bundle, workload: str, variant: Variant, reference: Path, device: Path) -> None:
    """Add what a device child left in `device`, beside the `reference` it started from."""
    target = _place(bundle.folder, workload, variant)
    part = target.with_name(f"{target.name}.part")
    folders.remove(part)
    part.mkdir(parents=True)
    for name in (OBSERVATION_FILE, TENSOR_FILE):
        shutil.copyfile(device / name, part / name)
    (part / START).write_text(start(reference), encoding="ascii")
    folders.remove(target)
    part.rename(target)


def find(folder: Path, workload: str, variant: Variant, reference: Path) -> Path | None:
    """What the bundle's device made of the same start, if it holds that."""
    place = _place(folder, workload, variant)
    try:
        same = (place / START).read_text(encoding="ascii") == start(reference)
    except OSError:
        return None
    return place if same else None


def start(reference: Path) -> str:
    """Names the weights and inputs that a reference left."""
    return folders.digest(reference, (WEIGHT_FILE, INPUT_FILE))


def _place(folder: Path, workload: str, variant: Variant) -> Path:
    return folder / workload / f"{variant.dtype.value}-{variant.phase.value}"
