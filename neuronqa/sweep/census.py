"""What a catalog holds, entry by entry: listing statuses, libraries, tasks, keys. A plan without a sweep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from neuronqa.catalog import Catalog
from neuronqa.catalog.select import StatusOf
from neuronqa.catalog.status import from_facts
from neuronqa.domain.catalog import CatalogInfo, Entry, ListingStatus
from neuronqa.sweep.answers import Answer
from neuronqa.sweep.plan import plan_configs

Advance = Callable[[int], None]


@dataclass(slots=True)
class Family:
    """The eligible entries of one model type, and the workloads that stand for them: one a kernel key."""

    entries: int = 0
    downloads: int = 0
    kernel_keys: set[str] = field(default_factory=set)

    @property
    def workloads(self) -> int:
        return len(self.kernel_keys)


@dataclass
class Census:
    """Counts over a catalog's entries. Every count sums to `info.registered`, and none leaves an entry out."""

    info: CatalogInfo
    statuses: Counter[ListingStatus] = field(default_factory=Counter)
    downloads: Counter[ListingStatus] = field(default_factory=Counter)
    libraries: Counter[str] = field(default_factory=Counter)
    tasks: Counter[str] = field(default_factory=Counter)
    reasons: Counter[tuple[ListingStatus, str]] = field(default_factory=Counter)
    kernel_keys: Counter[str] = field(default_factory=Counter)
    graph_keys: Counter[str] = field(default_factory=Counter)
    families: dict[str, Family] = field(default_factory=dict)
    configs: int = 0
    """Distinct configs that had to be planned."""

    def to_json(self) -> dict[str, Any]:
        """Strings in it come from the catalog and are hostile wherever they are shown."""
        return {
            "name": self.info.name,
            "source": self.info.source,
            "sha256": self.info.sha256,
            "registered": self.info.registered,
            "created": self.info.created,
            "statuses": {
                status.value: {"entries": self.statuses[status], "downloads": self.downloads[status]}
                for status in ListingStatus
            },
            "libraries": dict(self.libraries.most_common()),
            "tasks": dict(self.tasks.most_common()),
            "configs": self.configs,
            "kernel_keys": len(self.kernel_keys),
            "graph_keys": len(self.graph_keys),
        }


def census(catalog: Catalog, advance: Advance = lambda _: None) -> Census:
    """Plan what needs planning and count. Raises EnvironmentFault when the planner cannot run."""
    found = Census(catalog.info)
    planned = {answer["hash"]: _Said.of(answer) for answer in _counted(catalog, advance)}
    found.configs = len(planned)
    for entry in catalog.entries():
        status, reason = _status(entry, planned)
        found.statuses[status] += 1
        found.downloads[status] += entry.downloads
        found.libraries[entry.library] += 1
        found.tasks[entry.task] += 1
        if status is not ListingStatus.ELIGIBLE:
            found.reasons[status, reason] += 1
        elif entry.config in planned:
            said = planned[entry.config]
            found.kernel_keys[said.kernel_key] += 1
            found.graph_keys[said.graph_key] += 1
            family = found.families.setdefault(said.model_type, Family())
            family.entries += 1
            family.downloads += entry.downloads
            family.kernel_keys.add(said.kernel_key)
    return found


def statuses_of(catalog: Catalog) -> StatusOf:
    """Plan the catalog, and tell the listing status of each of its entries: what `status:` selects by."""
    planned = {answer["hash"]: _Said.of(answer) for answer in plan_configs(catalog)}
    return lambda entry: _status(entry, planned)[0]


@dataclass(frozen=True, slots=True)
class _Said:
    status: ListingStatus
    reason: str
    kernel_key: str
    graph_key: str
    model_type: str

    @classmethod
    def of(cls, answer: Answer) -> _Said:
        names = (answer.get(name) or "" for name in ("kernel_key", "graph_key", "model_type"))
        return cls(ListingStatus(answer["status"]), answer.get("reason") or "", *names)


def _counted(catalog: Catalog, advance: Advance) -> Iterator[Answer]:
    for number, answer in enumerate(plan_configs(catalog), start=1):
        advance(number)
        yield answer


def _status(entry: Entry, planned: Mapping[str, _Said]) -> tuple[ListingStatus, str]:
    decided = from_facts(entry)
    if decided is not None:
        return decided
    said = planned[entry.config or ""]
    return said.status, said.reason
