"""Where a fleet may put workers: the nodes of a Ray, and how many slots of a width each of them holds."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

CPU: Final = "CPU"
ACCELERATOR: Final = "neuron_cores"
"""Ray's own name for the cores of the real device; it sets NEURON_RT_VISIBLE_CORES for whoever holds some."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """One machine of a cluster."""

    id: str
    name: str
    slots: int
    """Workers of one width that it holds, whoever's they are."""


class Ground(Protocol):
    """What a fleet asks of the Ray it is on. A slot for a case on n ranks lies on one node: its ranks are one
    worker's children."""

    def nodes(self, ranks: int) -> Sequence[Node]:
        """The living nodes with room for at least one slot of this width."""
        ...

    def most_ranks(self) -> int:
        """The widest slot there can be."""
        ...

    def vacant(self, ranks: int) -> float:
        """Slots of this width that nobody has taken."""
        ...

    def options(self, ranks: int, node: Node) -> dict[str, Any]:
        """How Ray is asked for a slot on this node."""
        ...


@dataclass(frozen=True, kw_only=True)
class LocalGround:
    """This machine, for ourselves alone. More ranks than there are slots share all of them."""

    workers: int
    environment: Mapping[str, str]

    def nodes(self, ranks: int) -> Sequence[Node]:
        return [Node(id="", name=platform.node(), slots=self.workers // self._taken(ranks))]

    def most_ranks(self) -> int:
        return 1 << 30

    def vacant(self, ranks: int) -> float:
        del ranks
        return math.inf

    def options(self, ranks: int, node: Node) -> dict[str, Any]:
        del node
        return {"num_cpus": self._taken(ranks), "runtime_env": {"env_vars": dict(self.environment)}}

    def _taken(self, ranks: int) -> int:
        return min(ranks, self.workers)


@dataclass(frozen=True, kw_only=True)
class ClusterGround:
    """The Ray cluster this process is connected to, which others may use as well."""

    resource: str
    """What a rank takes one of."""

    def nodes(self, ranks: int) -> Sequence[Node]:
        found = (Node(id=one["NodeID"], name=_name(one), slots=self._has(one) // ranks) for one in _living())
        return sorted((node for node in found if node.slots), key=lambda node: node.id)

    def most_ranks(self) -> int:
        return max(map(self._has, _living()), default=0)

    def vacant(self, ranks: int) -> float:
        free: Mapping[str, float] = _ray().available_resources()
        return free.get(self.resource, 0.0) // ranks

    def options(self, ranks: int, node: Node) -> dict[str, Any]:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        asked: dict[str, Any] = {"num_cpus": ranks}
        if self.resource != CPU:
            asked = {"num_cpus": 0, "resources": {self.resource: ranks}}
        placed = NodeAffinitySchedulingStrategy(node_id=node.id, soft=False)
        return {**asked, "scheduling_strategy": placed}

    def _has(self, node: Mapping[str, Any]) -> int:
        return int(node["Resources"].get(self.resource, 0))


def _living() -> list[Mapping[str, Any]]:
    return [node for node in _ray().nodes() if node["Alive"]]


def _ray() -> Any:
    """What of Ray looks at a cluster has no types."""
    import ray

    return ray


def _name(node: Mapping[str, Any]) -> str:
    """Of the host, and apart from another node on it."""
    return f"{node.get('NodeManagerHostname', '')[:40]}-{node['NodeID'][:8]}"
