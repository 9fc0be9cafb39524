"""Published figures about the Hub's population, and arithmetic that turns shares into whole numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from neuronqa import bundled
from neuronqa.errors import BadInput

T = TypeVar("T")


@dataclass(frozen=True)
class Figure:
    """One number (or table of numbers) with where and when it was published."""

    value: Any
    source: str
    date: str
    kind: str
    """`published`, or `estimate` for a value derived from its source; `note` says how."""
    note: str = ""


@dataclass(frozen=True)
class Calibration:
    """All figures, by name."""

    figures: Mapping[str, Figure]

    def number(self, name: str) -> float:
        return float(self.figures[name].value)

    def table(self, name: str) -> dict[str, float]:
        return {str(key): float(value) for key, value in self.figures[name].value.items()}

    def tables(self, prefix: str) -> dict[str, float]:
        """Every figure below `prefix/`, as one table."""
        start = f"{prefix}/"
        return {name[len(start) :]: self.number(name) for name in self.figures if name.startswith(start)}

    def names(self, name: str) -> list[str]:
        return [str(item) for item in self.figures[name].value]

    def rows(self, name: str) -> list[list[float]]:
        return [[float(item) for item in row] for row in self.figures[name].value]


def load() -> Calibration:
    """Read `catalogs/calibration.json`. Raises BadInput for a figure without source, date or kind."""
    path = bundled.folder("catalogs") / "calibration.json"
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        figures = {name: Figure(**item) for name, item in value["figures"].items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"the calibration cannot be used: {error}", where=str(path)) from error
    for name, figure in figures.items():
        if not figure.source or not figure.date or figure.kind not in ("published", "estimate"):
            raise BadInput(f"figure {name!r} lacks source, date or kind", where=str(path))
    return Calibration(figures)


def apportion(total: int, shares: Mapping[T, float]) -> dict[T, int]:
    """Whole numbers in proportion to `shares` that sum to `total` (largest remainders, ties by order)."""
    whole = sum(shares.values())
    exact = {key: total * share / whole for key, share in shares.items()}
    counts = {key: int(value) for key, value in exact.items()}
    order = sorted(shares, key=lambda key: counts[key] - exact[key])
    for key in order[: total - sum(counts.values())]:
        counts[key] += 1
    return counts


def zipf(names: Sequence[T], slope: float, first: int = 1) -> dict[T, float]:
    """Weights that fall with the rank, the first name having rank `first`."""
    return {name: (rank**-slope) for rank, name in enumerate(names, start=first)}


def download_curve(size: int, first: float, segments: Sequence[Sequence[float]]) -> list[int]:
    """Downloads by rank: a piecewise Zipf law. `segments` are (last rank, slope) pairs, rank ascending."""
    curve: list[int] = []
    anchor_rank, anchor = 1, first
    for last, slope in segments:
        ranks = range(len(curve) + 1, min(int(last), size) + 1)
        curve.extend(max(1, round(anchor * (rank / anchor_rank) ** -slope)) for rank in ranks)
        anchor, anchor_rank = anchor * (last / anchor_rank) ** -slope, int(last)
    return curve
