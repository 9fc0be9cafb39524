"""Which inherited verdicts are checked by execution: a seeded draw among entries, never a choice."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from neuronqa.domain.plan import PlannedGroup

AUDIT_LIMIT: Final = 300
AUDIT_SHARE: Final = 0.05
"""Of the CPU time inside cases."""


def draw(
    groups: Sequence[PlannedGroup],
    representative: Mapping[str, str],
    executed: AbstractSet[str],
    audited: AbstractSet[str],
    seed: int,
) -> list[str]:
    """Workloads of inherited entries in a random order in which each entry is equally likely to come first.

    An entry is inherited when its kernel key's representative ran and its own workload did not. Those that were
    audited before are left out.
    """
    pool = [
        planned
        for planned in groups
        if planned.group.workload
        and planned.group.workload not in executed
        and representative.get(planned.group.kernel_key) in executed
    ]
    generator = random.Random(seed)
    # Exponential clocks at rate `entries` give a weighted permutation (Efraimidis and Spirakis, 2006).
    clocks = sorted((generator.expovariate(planned.entries), planned.group.workload) for planned in pool)
    return [workload for _, workload in clocks if workload not in audited]
