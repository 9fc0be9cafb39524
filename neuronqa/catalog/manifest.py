"""The table of contents of a snapshot: what it is, where it came from, and the hash of every part."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from neuronqa.domain.catalog import CatalogInfo, Source
from neuronqa.domain.identity import canonical_json, strict
from neuronqa.domain.outcome import clean_detail
from neuronqa.errors import BadInput

SCHEMA: Final = 1
FILE: Final = "manifest.json"
BLOCK: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of a snapshot. `sha256` is of its lines before compression, so it does not depend on a zlib version."""

    file: str
    rows: int
    sha256: str
    size: int = 0
    """Bytes of the file as it lies there."""
    blocks: tuple[int, ...] = ()
    """CRC-32 of each :data:`BLOCK` bytes of the file, so that damage can be placed."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Facts about a snapshot as a whole."""

    name: str
    source: Source
    created: str
    """ISO 8601, UTC; empty where a date would break reproducibility."""
    models: tuple[Shard, ...]
    configs: Shard
    made_by: Mapping[str, Any] = field(default_factory=dict)
    """Versions, seed, endpoint: what it takes to understand or repeat the snapshot."""
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Entries by library, task and absence."""

    @property
    def registered(self) -> int:
        return sum(shard.rows for shard in self.models)

    @property
    def sha256(self) -> str:
        """Covers every fact. Configs are in it by the hashes that entries name them by, so that it does not depend on
        the order in which they came over several connections."""
        parts = {
            "source": self.source,
            "models": [(shard.rows, shard.sha256) for shard in self.models],
            "configs": self.configs.rows,
        }
        return hashlib.sha256(canonical_json(parts).encode("ascii")).hexdigest()

    @property
    def info(self) -> CatalogInfo:
        return CatalogInfo(
            name=self.name, source=self.source, sha256=self.sha256, registered=self.registered, created=self.created
        )

    def to_json(self) -> dict[str, Any]:
        return {"schema_version": SCHEMA, "registered": self.registered, "sha256": self.sha256, **asdict(self)}


def read(folder: Path) -> Manifest:
    """Read `folder/manifest.json`. Raises BadInput when it is absent, newer, malformed or contradicts itself."""
    path = folder / FILE
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise BadInput(f"no readable {FILE}: {error.strerror}", where=str(folder)) from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"the manifest is not JSON: {error}", where=str(path)) from error
    try:
        return _parse(value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadInput(f"the manifest cannot be used: {error}", where=str(path)) from error


def _parse(value: Mapping[str, Any]) -> Manifest:
    schema = value["schema_version"]
    if schema != SCHEMA:
        raise ValueError(f"its schema_version is {schema!r}, this version of neuronqa reads {SCHEMA}")
    manifest = Manifest(
        name=shown_name(value["name"]),
        source=Source(value["source"]),
        created=clean_detail(_text(value["created"])),
        models=tuple(_shard(item) for item in value["models"]),
        configs=_shard(value["configs"]),
        made_by=dict(value["made_by"]),
        counts={_text(key): dict(item) for key, item in value["counts"].items()},
    )
    for key, said in (("registered", manifest.registered), ("sha256", manifest.sha256)):
        if value[key] != said:
            raise ValueError(f"it says {key} = {value[key]!r}, but its parts give {said!r}")
    return manifest


def _shard(value: Mapping[str, Any]) -> Shard:
    numbers = (value["rows"], value["size"], *value["blocks"])
    shard = Shard(_text(value["file"]), value["rows"], _text(value["sha256"]), value["size"], tuple(value["blocks"]))
    if Path(shard.file).name != shard.file or shard.file in ("", ".", ".."):
        raise ValueError(f"{shard.file!r} is not a plain file name")
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError(f"{shard.file!r} has counts that are no counts")
    return shard


def shown_name(value: Any) -> str:
    """The name of a catalog as it may stand on a terminal and in a log. Raises ValueError for any other."""
    name = _text(value)
    if not name or name != clean_detail(name):
        raise ValueError(f"its name {name[:80]!r} is not one short line of printable text")
    return name


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def write(folder: Path, made: Manifest) -> None:
    """Write `folder/manifest.json`, whole or not at all."""
    partial = folder / f"{FILE}.partial"
    partial.write_text(json.dumps(strict(made.to_json()), indent=1, sort_keys=True) + "\n", encoding="ascii")
    partial.replace(folder / FILE)
