"""How well causes are told apart, graded on what was planted: B-cubed over the controls of a sweep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """B-cubed: averaged over items, the share of its cluster that has its label (precision), and of its label that is
    in its cluster (recall). (Bagga and Baldwin 1998; Amigo et al. 2009)"""

    items: int
    labels: int
    clusters: int
    precision: float | None
    recall: float | None

    @property
    def f1(self) -> float | None:
        if self.precision is None or self.recall is None:
            return None
        return 2 * self.precision * self.recall / (self.precision + self.recall)

    def to_json(self) -> dict[str, Any]:
        return {
            "items": self.items,
            "faults": self.labels,
            "clusters": self.clusters,
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
        }


def grade(pairs: Sequence[tuple[Hashable, Hashable]]) -> Grade:
    """Grade `(label, cluster)` pairs. With none there is no grade, which is not a good one."""
    labels = Counter(label for label, _ in pairs)
    clusters = Counter(cluster for _, cluster in pairs)
    both = Counter(pairs)
    n = len(pairs)
    return Grade(
        items=n,
        labels=len(labels),
        clusters=len(clusters),
        precision=sum(c * c / clusters[pair[1]] for pair, c in both.items()) / n if n else None,
        recall=sum(c * c / labels[pair[0]] for pair, c in both.items()) / n if n else None,
    )
