"""Is a snapshot what was written? Every file, line, hash and count, and where the first bad byte lies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from neuronqa.catalog import damage, rows
from neuronqa.catalog.catalog import Catalog, Selected
from neuronqa.catalog.manifest import Manifest, Shard
from neuronqa.catalog.snapshot import Snapshot, parse_config, read_lines
from neuronqa.domain.catalog import Entry
from neuronqa.errors import BadInput


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is not as it should be."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def problems_of(catalog: Catalog) -> Iterator[Problem]:
    """Everything that is wrong with a catalog; a selection is as sound as what it selects from.

    A definition was checked when it was opened.
    """
    if isinstance(catalog, Selected):
        yield from problems_of(catalog.whole)
    elif isinstance(catalog, Snapshot):
        yield from verify(catalog.folder)


def verify(folder: Path) -> Iterator[Problem]:
    """Everything that is wrong with the snapshot in `folder`, in the order of its files. Raises BadInput without a
    manifest that can be read."""
    manifest = Snapshot.open(folder).manifest
    known: set[str] = set()
    yield from _shard(folder, manifest.configs, lambda line: known.add(parse_config(line)[0]))
    check = _Entries(known)
    for shard in manifest.models:
        yield from _shard(folder, shard, check.add)
        yield from (Problem(shard.file, what) for what in check.told())
    yield from (Problem("manifest.json", what) for what in check.counts(manifest))


def _shard(folder: Path, shard: Shard, take: Callable[[bytes], object]) -> Iterator[Problem]:
    """Damage of the file, then of its lines; a line that cannot be taken is named."""
    path = folder / shard.file
    try:
        place = damage.first_bad_byte(path, shard)
    except OSError as error:
        yield Problem(shard.file, f"cannot be read: {error.strerror}")
        return
    if place:
        yield Problem(shard.file, place)
    try:
        for number, line in read_lines(folder, shard):
            try:
                take(line)
            except rows.BadRow as error:
                yield Problem(f"{shard.file}, line {number}", f"{error} (byte {error.offset} of the line)")
    except BadInput as error:
        yield Problem(error.where.replace(f"{folder}/", ""), error.what)


class _Entries:
    """What must hold over all entries of a snapshot."""

    def __init__(self, configs: set[str]) -> None:
        self._configs = configs
        self._used: set[str] = set()
        self._ids: set[bytes] = set()
        self._rank = 0
        self._said: list[str] = []
        self._counts: dict[str, Counter[str]] = {"library": Counter(), "task": Counter(), "absence": Counter()}

    def add(self, line: bytes) -> None:
        """Check a line. Raises BadRow when it is no entry."""
        entry = rows.parse_entry(line)
        self._counts["library"][entry.library] += 1
        self._counts["task"][entry.task] += 1
        self._counts["absence"][entry.absence.partition(":")[0]] += 1
        self._said += self._contradictions(entry)

    def told(self) -> list[str]:
        """What was found since the last call."""
        said, self._said = self._said, []
        return said

    def counts(self, manifest: Manifest) -> Iterator[str]:
        """What the manifest counts otherwise, and configs that no entry has."""
        for name, found in self._counts.items():
            if dict(found) != dict(manifest.counts.get(name, {})):
                yield f"it counts entries by {name} otherwise than they are"
        idle = len(self._configs - self._used)
        if idle:
            yield f"{idle} configs belong to no entry"

    def _contradictions(self, entry: Entry) -> Iterator[str]:
        name = entry.id.encode("utf-8", "surrogatepass")
        if name in self._ids:
            yield f"entry {entry.rank}: its id is there twice"
        self._ids.add(name)
        if entry.rank <= self._rank:
            yield f"entry {entry.rank}: its rank does not come after {self._rank}"
        self._rank = entry.rank
        if entry.config is not None:
            self._used.add(entry.config)
            if entry.config not in self._configs:
                yield f"entry {entry.rank}: its config {entry.config} is not in the snapshot"
