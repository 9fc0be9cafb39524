"""Two sweeps, entry by entry: what regressed, what was fixed, and what nobody can say. Every entry is in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from neuronqa.domain.change import Change, Line, change
from neuronqa.errors import InvariantBroken
from neuronqa.report.performance import Performance

SCHEMA_VERSION: Final = 1


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the two: a sweep, or what was exported of one."""

    name: str
    build: str
    registered: int
    entries: Mapping[str, Line]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One entry on both sides."""

    name: str
    change: Change
    before: Line | None
    after: Line | None
    confirmed: str = ""
    """What running it again alone, equally often on both builds, came to; empty where that was not done."""

    @property
    def waived(self) -> bool:
        """Is everything it fails by now put up with?"""
        return self.after is not None and bool(self.after.causes) and self.after.causes <= self.after.waived


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Both sides and every entry of either."""

    a: Side
    b: Side
    lines: tuple[Changed, ...] = field(repr=False)
    performance: Performance | None = None
    """What became dearer; None where a side has no figures of cases."""

    @property
    def counts(self) -> Counter[Change]:
        return Counter(line.change for line in self.lines)

    def of(self, change: Change) -> list[Changed]:
        return [line for line in self.lines if line.change is change]

    def to_json(self, limit: int = 500) -> dict[str, Any]:
        """Counts, and up to `limit` lines of every change that is one."""
        shown = (change for change in Change if change.is_one)
        return {
            "schema_version": SCHEMA_VERSION,
            "a": {"name": self.a.name, "build": self.a.build, "registered": self.a.registered},
            "b": {"name": self.b.name, "build": self.b.build, "registered": self.b.registered},
            "counts": {change.value: self.counts[change] for change in Change},
            "lines": {change.value: [_line_json(line) for line in self.of(change)[:limit]] for change in shown},
            "causes": {
                "regressed": _by_cause(self.of(Change.REGRESSED)),
                "shifted": _by_cause(self.of(Change.SHIFTED)),
            },
            "performance": self.performance.to_json(limit) if self.performance else None,
        }


def compare(a: Side, b: Side) -> Comparison:
    """Put every entry of either side into one line. Raises InvariantBroken if the sums of either side do not hold."""
    names = dict.fromkeys((*a.entries, *b.entries))
    lines = tuple(
        Changed(name=name, change=change(a.entries.get(name), b.entries.get(name)), before=before, after=after)
        for name in names
        for before, after in [(a.entries.get(name), b.entries.get(name))]
    )
    found = Comparison(a=a, b=b, lines=lines)
    _conserve(found)
    return found


def _conserve(found: Comparison) -> None:
    counts = found.counts
    for side, absent in ((found.a, Change.ADDED), (found.b, Change.GONE)):
        total = sum(counts.values()) - counts[absent]
        if total != side.registered:
            raise InvariantBroken(
                f"the comparison holds {total:,} entries of {side.name}, registered are {side.registered:,}",
                hint="do not use this result; report it as a fault of neuronqa",
            )


def confirmed(found: Comparison, verdicts: Mapping[str, str]) -> Comparison:
    """The same with what running regressed entries again came to: `verdicts` maps names to words.

    The change itself stays: a second look labels, it does not decide.
    """
    lines = (replace(line, confirmed=verdicts.get(line.name, "")) for line in found.lines)
    return replace(found, lines=tuple(lines))


def numbered(entries: Iterable[tuple[str, Line]]) -> Iterator[tuple[str, Line]]:
    """Ids are a catalog's own; where one lists an id twice, the second is another entry."""
    seen: Counter[str] = Counter()
    for name, line in entries:
        seen[name] += 1
        yield (name if seen[name] == 1 else f"{name} #{seen[name]}"), line


def _by_cause(lines: Sequence[Changed]) -> list[dict[str, Any]]:
    """How many entries each cause that was not there before stands in, most first."""
    counted: Counter[tuple[str, str]] = Counter()
    for line in lines:
        if line.after is not None:
            before = line.before.causes if line.before else frozenset()
            counted.update((key, line.after.outcome) for key in line.after.causes - before)
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return [{"key": key, "outcome": outcome, "entries": n} for (key, outcome), n in ordered]


def _line_json(line: Changed) -> dict[str, Any]:
    return {
        "name": line.name,
        "before": _side_json(line.before),
        "after": _side_json(line.after),
        "waived": line.waived,
        "confirmed": line.confirmed,
    }


def _side_json(line: Line | None) -> dict[str, Any] | None:
    if line is None:
        return None
    return {
        "standing": line.standing.value,
        "rung": line.rung,
        "outcome": line.outcome,
        "causes": sorted(line.causes),
        "downloads": line.downloads,
    }
