"""A frozen catalog as a folder, written and read as a stream.

    manifest.json          source, versions, counts, one hash a file
    models-00000.jsonl.gz  5,000 entries each, in rank order
    configs.jsonl.gz       each distinct config once: {"hash", "text"}

Every line carries its own checksum (:mod:`neuronqa.catalog.rows`), every file a hash, and the manifest a hash of those.
A reader checks as it goes: what it has handed out was right, and at the first thing that is not it stops with BadInput
naming file and line.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

from neuronqa.catalog import config, manifest, rows
from neuronqa.catalog.manifest import Manifest, Shard
from neuronqa.domain.catalog import CatalogInfo, Entry, Source
from neuronqa.errors import BadInput

SHARD_ROWS: Final = 5_000
CONFIGS_FILE: Final = "configs.jsonl.gz"
LINE_LIMIT: Final = 7 * config.BODY_LIMIT
"""Bytes of one line; a byte of a config is at most six of its line (`\\udcff`)."""
HINT: Final = "neuronqa catalog verify names every damaged part; pull or generate the catalog again"


@dataclass(frozen=True)
class Snapshot:
    """A catalog read from its folder."""

    folder: Path
    manifest: Manifest
    notice: str = ""
    """What a person must know about how this catalog was chosen; empty when there is nothing to say."""

    @classmethod
    def open(cls, folder: Path, notice: str = "") -> Snapshot:
        """Raises BadInput when the folder holds no snapshot this version can read."""
        return cls(folder, manifest.read(folder), notice)

    @property
    def info(self) -> CatalogInfo:
        return self.manifest.info

    def entries(self) -> Iterator[Entry]:
        """Every entry in rank order. Raises BadInput at the first damaged line."""
        may_define = self.manifest.source in (Source.FILE, Source.BUNDLED)
        for shard in self.manifest.models:
            for number, line in read_lines(self.folder, shard):
                try:
                    entry = rows.parse_entry(line)
                except rows.BadRow as error:
                    raise damaged(self.folder / shard.file, number, str(error)) from None
                if entry.workload is not None and not may_define:
                    raise damaged(self.folder / shard.file, number, "an entry from outside defines a workload")
                yield entry

    def configs(self) -> Iterator[tuple[str, str]]:
        """Every distinct config as (hash, text). Raises BadInput at the first damaged line."""
        shard = self.manifest.configs
        for number, line in read_lines(self.folder, shard):
            try:
                yield parse_config(line)
            except rows.BadRow as error:
                raise damaged(self.folder / shard.file, number, str(error)) from None


def finished(home: Path) -> list[Path]:
    """Folders of whole snapshots below `home`, newest first: they are named by UTC time, so that they sort."""
    whole = [place for place in home.glob("*") if (place / manifest.FILE).is_file()]
    return sorted(whole, key=lambda place: place.name, reverse=True)


def newest(home: Path) -> Snapshot | None:
    """The newest whole snapshot below `home`; None for none."""
    found = finished(home)
    return Snapshot.open(found[0]) if found else None


def config_line(name: str, text: str) -> bytes:
    """The line of a config."""
    return rows.sealed({"hash": name, "text": text})


def parse_config(line: bytes) -> tuple[str, str]:
    """Read what :func:`config_line` wrote. Raises BadRow."""
    value = rows.unsealed(line)
    name, text = value.get("hash"), value.get("text")
    if len(value) != 2 or not isinstance(name, str) or not isinstance(text, str):
        raise rows.BadRow("not a config line")
    if config.text_hash(text) != name:
        raise rows.BadRow("its hash is not the hash of its text")
    return name, text


def read_lines(folder: Path, shard: Shard) -> Iterator[tuple[int, bytes]]:
    """Number (from 1) and bytes of each line; count and hash are checked at the end. Raises BadInput."""
    path = folder / shard.file
    digest = hashlib.sha256()
    number = 0
    try:
        with gzip.open(path, "rb") as lines:
            while line := lines.readline(LINE_LIMIT):
                number += 1
                digest.update(line)
                if not line.endswith(b"\n"):
                    raise damaged(path, number, "the line has no end")
                yield number, line
    except FileNotFoundError as error:
        raise BadInput("a file of the snapshot is missing", where=str(path), hint=HINT) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise damaged(path, number + 1, f"not the gzip stream that was written: {error}") from error
    except OSError as error:
        raise BadInput(f"cannot read: {error.strerror}", where=str(path)) from error
    if number != shard.rows:
        raise damaged(path, number, f"{number} lines, the manifest says {shard.rows}")
    if digest.hexdigest() != shard.sha256:
        raise damaged(path, number, "its hash is not the one in the manifest")


def damaged(path: Path, number: int, reason: str) -> BadInput:
    """The error for a line that is not what was written."""
    return BadInput(f"damaged snapshot: {reason}", where=f"{path}, line {number}", hint=HINT)


def fingerprint(path: Path) -> tuple[int, tuple[int, ...]]:
    """Size of a file and the CRC-32 of each of its blocks."""
    size, blocks = 0, []
    with path.open("rb") as file:
        while block := file.read(manifest.BLOCK):
            size += len(block)
            blocks.append(zlib.crc32(block))
    return size, tuple(blocks)


class ShardWriter:
    """One file of lines, compressed without a timestamp, so that equal lines make equal bytes."""

    def __init__(self, folder: Path, file: str) -> None:
        self._path = folder / file
        self._rows = 0
        self._digest = hashlib.sha256()
        self._raw: IO[bytes] = self._path.open("wb")
        self._gzip = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=self._raw, mtime=0)

    @property
    def rows(self) -> int:
        return self._rows

    def add(self, line: bytes) -> None:
        self._rows += 1
        self._digest.update(line)
        self._gzip.write(line)

    def close(self) -> Shard:
        self._gzip.close()
        self._raw.close()
        size, blocks = fingerprint(self._path)
        return Shard(self._path.name, self._rows, self._digest.hexdigest(), size, blocks)


class SnapshotWriter:
    """Writes a snapshot into an empty folder: configs and entries in, manifest last.

    Without a manifest a folder is no snapshot, so one that was cut short is never mistaken for a whole one.
    """

    def __init__(
        self, folder: Path, name: str, source: Source, *, created: str = "", made_by: Mapping[str, Any]
    ) -> None:
        self._folder = folder
        self._name = name
        self._source = source
        self._created = created
        self._made_by = made_by
        self._counts: dict[str, Counter[str]] = {"library": Counter(), "task": Counter(), "absence": Counter()}
        self._done: list[Shard] = []
        self._models: ShardWriter | None = None
        self._configs = ShardWriter(folder, CONFIGS_FILE)
        self._known: set[bytes] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()

    def add_config(self, text: str) -> str:
        """Keep a stored text (see :func:`neuronqa.catalog.config.stored_text`), once, and return its hash."""
        name = config.text_hash(text)
        key = bytes.fromhex(name)
        if key not in self._known:
            self._known.add(key)
            self._configs.add(config_line(name, text))
        return name

    def add(self, entry: Entry) -> None:
        """Append an entry; its config must have been added before."""
        if entry.config is not None and bytes.fromhex(entry.config) not in self._known:
            raise ValueError(f"entry {entry.rank} names a config that was not added")
        if self._models is None:
            self._models = ShardWriter(self._folder, f"models-{len(self._done):05d}.jsonl.gz")
        self._models.add(rows.entry_line(entry))
        self._counts["library"][entry.library] += 1
        self._counts["task"][entry.task] += 1
        self._counts["absence"][entry.absence.partition(":")[0]] += 1
        if self._models.rows == SHARD_ROWS:
            self._done.append(self._models.close())
            self._models = None

    def finish(self) -> Manifest:
        """Close every file and write the manifest."""
        if self._models is not None:
            self._done.append(self._models.close())
            self._models = None
        made = Manifest(
            name=self._name,
            source=self._source,
            created=self._created,
            models=tuple(self._done),
            configs=self._configs.close(),
            made_by=self._made_by,
            counts={key: dict(sorted(count.items())) for key, count in self._counts.items()},
        )
        manifest.write(self._folder, made)
        return made
