"""What a sweep means to do with a catalog: every entry is in a group, every group has a listing outcome."""

from __future__ import annotations

from dataclasses import dataclass

from neuronqa.domain.outcome import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanGroup:
    """Entries that share listing outcome, kernel key and workload, and therefore every verdict."""

    listing: Outcome
    kernel_key: str = ""
    graph_key: str = ""
    workload: str = ""
    """Workload hash; empty where nothing can be run."""
    model_type: str = ""
    class_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedGroup:
    """A group as the database knows it, with its weight."""

    id: int
    group: PlanGroup
    entries: int
    downloads: int
