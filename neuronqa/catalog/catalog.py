"""What every catalog offers, and the two kinds that are not read from a snapshot: built in memory, and selected."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from neuronqa.catalog import rows, select
from neuronqa.catalog.manifest import Manifest, Shard
from neuronqa.catalog.snapshot import SHARD_ROWS, config_line
from neuronqa.domain.catalog import CatalogInfo, Entry, Source
from neuronqa.domain.identity import content_hash
from neuronqa.domain.outcome import clean_detail
from neuronqa.errors import UsageError


class Catalog(Protocol):
    """A frozen list of entries. Every iterator starts anew, in the same order, and holds one row at a time."""

    @property
    def info(self) -> CatalogInfo: ...

    @property
    def notice(self) -> str:
        """What a person must know about how this catalog was chosen; empty when there is nothing to say."""
        ...

    def entries(self) -> Iterator[Entry]:
        """Every entry, in rank order."""
        ...

    def configs(self) -> Iterator[tuple[str, str]]:
        """Every distinct config as (hash, text)."""
        ...


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A catalog small enough to be held, made from a definition file."""

    name: str
    source: Source
    rows: tuple[Entry, ...]
    texts: Mapping[str, str]
    """Config texts by hash."""
    notice: str = ""
    policy: str = ""
    """The policy it is made for."""

    @cached_property
    def info(self) -> CatalogInfo:
        return self._manifest().info

    def entries(self) -> Iterator[Entry]:
        return iter(self.rows)

    def configs(self) -> Iterator[tuple[str, str]]:
        return iter(self.texts.items())

    def _manifest(self) -> Manifest:
        """The manifest this catalog would have as a snapshot, so that both have one hash."""
        lines = [rows.entry_line(entry) for entry in self.rows]
        shards = [lines[start : start + SHARD_ROWS] for start in range(0, len(lines), SHARD_ROWS)]
        configs = [config_line(name, text) for name, text in self.texts.items()]
        return Manifest(
            name=self.name,
            source=self.source,
            created="",
            models=tuple(_shard(shard) for shard in shards),
            configs=_shard(configs),
        )


@dataclass(frozen=True, kw_only=True)
class Selected:
    """What a selector keeps of another catalog: a catalog of its own, with its own name and hash."""

    whole: Catalog
    selector: select.Selector
    kept: frozenset[int]
    """Ranks."""

    @cached_property
    def info(self) -> CatalogInfo:
        parent = self.whole.info
        named = {"parent": parent.sha256, "kept": hashlib.sha256(repr(sorted(self.kept)).encode()).hexdigest()}
        name = f"{parent.name}[{clean_detail(str(self.selector))}]"
        return replace(parent, name=name, sha256=_sha256(named), registered=len(self.kept))

    @property
    def notice(self) -> str:
        return self.whole.notice

    def entries(self) -> Iterator[Entry]:
        return (entry for entry in self.whole.entries() if entry.rank in self.kept)

    def configs(self) -> Iterator[tuple[str, str]]:
        wanted = {entry.config for entry in self.entries()}
        return ((name, text) for name, text in self.whole.configs() if name in wanted)


Statuses = Callable[[Catalog], select.StatusOf]
"""Plans a catalog and tells the listing status of its entries."""


def selected(
    whole: Catalog, expression: str, statuses: Statuses | None = None, results: select.Results | None = None
) -> Selected:
    """Derive a catalog.

    Raises UsageError for a bad expression, for `status:` without `statuses`, for `failed:` and `cluster:` without
    `results`, and for one that selects nothing: a report over no entry would read as if nothing had failed.
    """
    selector = select.parse(expression, results)
    status_of = statuses(whole) if statuses and selector.asks_status else None
    kept = frozenset(select.chosen(selector, whole.entries(), status_of))
    if not kept:
        hint = "patterns match whole values, with * for any text; join them with , (and) and | (or)"
        raise UsageError(f"nothing in {whole.info.name} is selected by {expression[:80]!r}", hint=hint)
    return Selected(whole=whole, selector=selector, kept=kept)


def _shard(lines: Iterable[bytes]) -> Shard:
    digest = hashlib.sha256()
    count = 0
    for line in lines:
        digest.update(line)
        count += 1
    return Shard("", count, digest.hexdigest())


def _sha256(value: object) -> str:
    return hashlib.sha256(content_hash(value).encode("ascii")).hexdigest()
