"""How near the generated edition comes to the published figures: target beside what was generated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from neuronqa.catalog import status
from neuronqa.catalog.catalog import Catalog
from neuronqa.catalog.config import MalformedConfig, parse
from neuronqa.catalog.offline.calibration import Calibration
from neuronqa.catalog.offline.drafts import modality
from neuronqa.catalog.offline.population import SLICE, TEXT
from neuronqa.domain.catalog import Entry

TEXT_SLICE: Final = TEXT[0]


@dataclass(frozen=True, slots=True)
class Line:
    """One figure: what was wanted, what came out, and how far apart they may be."""

    figure: str
    target: float
    found: float
    tolerance: float
    kind: str
    """`published` or `estimate`."""

    @property
    def holds(self) -> bool:
        return abs(self.found - self.target) <= self.tolerance


@dataclass
class _Tally:
    """What one pass over the entries counts."""

    registered: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    libraries: Counter[str] = field(default_factory=Counter)
    tasks: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    downloads: list[int] = field(default_factory=list)
    by_modality: Counter[str] = field(default_factory=Counter)
    sizes: list[int] = field(default_factory=list)
    below_1b: list[int] = field(default_factory=lambda: [0, 0])
    """Downloads of models below one billion parameters, and of all whose size is known."""
    declared: int = 0

    def add(self, entry: Entry, malformed: bool) -> None:
        self.registered += 1
        self.declared += entry.base_model != ""
        self.downloads.append(entry.downloads)
        self.by_modality[modality(entry.task)] += entry.downloads
        if entry.parameters:
            self.sizes.append(entry.parameters)
            self.below_1b[0] += entry.downloads if entry.parameters < 1e9 else 0
            self.below_1b[1] += entry.downloads
        decided = status.from_facts(entry)
        if decided is not None:
            self.statuses[decided[0].value] += 1
            self.libraries[entry.library if decided[0].value == "non_transformers" else ""] += 1
        elif malformed:
            self.statuses["config_malformed"] += 1
        else:
            self._add_transformers(entry)

    def _add_transformers(self, entry: Entry) -> None:
        task = TEXT_SLICE if entry.task in SLICE else entry.task
        if task == TEXT_SLICE:
            self.types[entry.model_type] += 1
        if entry.custom_code:
            self.statuses["remote_code"] += 1
        else:
            self.tasks[task] += 1


def compare(figures: Calibration, catalog: Catalog) -> list[Line]:
    """Measure every figure that facts show. Statuses that only a plan can tell are not among them."""
    malformed = {name for name, text in catalog.configs() if _malformed(text)}
    tally = _Tally()
    for entry in catalog.entries():
        tally.add(entry, entry.config in malformed)
    lines: list[Line] = []

    def line(name: str, target: float, found: float, tolerance: float) -> None:
        lines.append(Line(name, target, found, tolerance, figures.figures[name.partition(":")[0]].kind))

    _statuses(figures, tally, line)
    _downloads(figures, tally, line)
    _shares("libraries", figures.table("libraries"), tally.libraries, line)
    _shares("tasks", figures.table("tasks"), tally.tasks, line)
    _shares(f"types/{TEXT_SLICE}", figures.table(f"types/{TEXT_SLICE}"), tally.types, line)
    for name, target, found in zip(
        "123", figures.figures["sizes/quartiles"].value, _quartiles(tally.sizes), strict=True
    ):
        line(f"sizes/quartiles:{name}", target, found, 0.35 * target)
    line("families/declared", figures.number("families/declared"), tally.declared / tally.registered, 0.01)
    return lines


_Add = Callable[[str, float, float, float], None]


def _statuses(figures: Calibration, tally: _Tally, line: _Add) -> None:
    for name, share in figures.tables("status").items():
        if name in tally.statuses:
            line(f"status/{name}", share, tally.statuses[name] / tally.registered, 0.0005 + 0.02 * share)


def _downloads(figures: Calibration, tally: _Tally, line: _Add) -> None:
    total = sum(tally.downloads)
    first = figures.number("downloads/first")
    line("downloads/first", first, max(tally.downloads), 0.01 * first)
    whole = figures.number("downloads/total")
    line("downloads/total", whole, total, 0.1 * whole)
    top = sum(sorted(tally.downloads, reverse=True)[:200]) / total
    line("downloads/top200_share", figures.number("downloads/top200_share"), top, 0.02)
    for name, share in figures.table("downloads/modality").items():
        line(f"downloads/modality:{name}", share, tally.by_modality[name] / total, 0.03)
    below, known = tally.below_1b
    line("downloads/below_1b", figures.number("downloads/below_1b"), below / max(1, known), 0.04)


def _shares(name: str, targets: Mapping[str, float], counts: Mapping[str, int], line: _Add) -> None:
    whole = sum(count for key, count in counts.items() if key)
    for key, share in targets.items():
        line(f"{name}:{key}", share, counts.get(key, 0) / max(1, whole), 0.006 + 0.08 * share)


def _quartiles(values: Iterable[int]) -> list[float]:
    ordered = sorted(values)
    return [float(ordered[len(ordered) * part // 4]) for part in (1, 2, 3)] if ordered else [0.0, 0.0, 0.0]


def _malformed(text: str) -> bool:
    try:
        parse(text)
    except MalformedConfig:
        return True
    return False
