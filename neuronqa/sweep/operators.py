"""How a sweep's operators were used, and in which forms those are needed that the device did not run itself."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from neuronqa.domain.case import Variant
from neuronqa.domain.identity import canonical_json
from neuronqa.sweep.tally import Weight

SAMPLES: Final = 200
"""Forms kept of one operator: those that most entries need."""


@dataclass(frozen=True, slots=True)
class Used:
    """The operators one attempt recorded."""

    attempt: int
    workload_id: int
    workload: str
    variant: Variant
    ops: Sequence[Mapping[str, Any]]


@dataclass(kw_only=True)
class Use:
    """One (operator, dtype, mechanism), summed over a sweep."""

    calls: int = 0
    nbytes: int = 0
    ns: int = 0
    workloads: dict[int, Weight] = field(default_factory=dict)


@dataclass(kw_only=True)
class Sample:
    """One form of an operator: what a kernel for it would have to take."""

    dtype: str
    phase: str
    direction: str
    shapes: Sequence[Sequence[int]]
    strides: Sequence[Sequence[int]]
    attempt: int
    calls: int = 0
    workloads: dict[int, Weight] = field(default_factory=dict)

    @property
    def entries(self) -> int:
        return sum(weight.entries for weight in self.workloads.values())

    @property
    def downloads(self) -> int:
        return sum(weight.downloads for weight in self.workloads.values())


@dataclass
class Operators:
    """Sums over the attempts of a sweep."""

    behind: Mapping[str, Weight]
    uses: dict[tuple[str, str, int], Use] = field(default_factory=dict)
    needs: dict[tuple[str, int], int] = field(default_factory=dict)
    """Calls by (operator, workload id) that the device did not run itself."""
    weights: dict[int, Weight] = field(default_factory=dict)
    samples: dict[str, dict[str, Sample]] = field(default_factory=dict)

    def add(self, attempts: Iterable[Used]) -> None:
        for used in attempts:
            weight = self.weights.setdefault(used.workload_id, self.behind.get(used.workload, Weight()))
            for op in used.ops:
                self._add(used, op, weight)

    def _add(self, used: Used, op: Mapping[str, Any], weight: Weight) -> None:
        name, mechanism, calls = str(op["op"]), int(op["mechanism"]), int(op["count"])
        use = self.uses.setdefault((name, str(op["dtype"]), mechanism), Use())
        use.calls += calls
        use.nbytes += int(op["nbytes"])
        use.ns += int(op.get("ns", 0))
        use.workloads[used.workload_id] = weight
        if mechanism:
            need = name, used.workload_id
            self.needs[need] = self.needs.get(need, 0) + calls
            sample = self._sample(name, used, op)
            sample.calls += calls
            sample.workloads[used.workload_id] = weight

    def _sample(self, name: str, used: Used, op: Mapping[str, Any]) -> Sample:
        phase, direction = used.variant.phase.value, "backward" if op.get("backward") else "forward"
        strides = op.get("strides", ())
        key = canonical_json([op["dtype"], phase, direction, op["shapes"], strides])
        fresh = Sample(
            dtype=str(op["dtype"]),
            phase=phase,
            direction=direction,
            shapes=op["shapes"],
            strides=strides,
            attempt=used.attempt,
        )
        return self.samples.setdefault(name, {}).setdefault(key, fresh)

    def worksheet(self, name: str) -> list[Sample]:
        """The forms of an operator, those first that most entries need."""
        forms = self.samples.get(name, {})
        order = [(-sample.entries, -sample.calls, key) for key, sample in forms.items()]
        return [forms[key] for _, _, key in heapq.nsmallest(SAMPLES, order)]
