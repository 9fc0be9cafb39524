"""Which inherited verdicts are checked by execution: a seeded draw among entries, never a choice."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final

AUDIT_LIMIT: Final = 300
AUDIT_SHARE: Final = 0.05
"""Of the CPU time inside cases."""


def draw(heirs: Iterable[tuple[str, int]], audited: AbstractSet[str], seed: int) -> list[str]:
    """Workloads of inherited entries in a random order in which each entry is equally likely to come first.

    `heirs`: (workload, entries) of every group that inherits. At most :data:`AUDIT_LIMIT`, those that were `audited`
    before included; these are left out.
    """
    generator = random.Random(seed)
    # Exponential clocks at rate `entries` give a weighted permutation (Efraimidis and Spirakis, 2006).
    clocks = ((generator.expovariate(entries), workload) for workload, entries in heirs)
    first = dict.fromkeys(workload for _, workload in heapq.nsmallest(2 * AUDIT_LIMIT, clocks))
    return [workload for workload in first if workload not in audited][: max(0, AUDIT_LIMIT - len(audited))]
