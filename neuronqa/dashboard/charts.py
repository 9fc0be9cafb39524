"""What the plots draw: small values that a script hands to Chart.js, and that a table on the page says as well."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any, Final

OPERATORS: Final = 12
"""Bars of a plot over operators."""


class Look(StrEnum):
    """What a series is, which decides its colour and its line."""

    DEVICE = "device"
    CPU = "cpu"
    LOW = "low"
    HIGH = "high"
    """The band between `low` and `high` is filled."""
    PASS = "pass"
    FAIL = "fail"
    PLAIN = "plain"


@dataclass(frozen=True, kw_only=True)
class Series:
    """One line, or the bars of one colour. None leaves a gap."""

    name: str
    look: Look
    values: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A plot."""

    title: str
    kind: str
    """`line`, `bar` or `bars` (lying)."""
    x: str
    y: str
    labels: tuple[str, ...]
    series: tuple[Series, ...]
    logarithmic: bool = False
    percent: bool = False
    links: tuple[str, ...] = ()
    """Where a click on a label's point leads."""

    @property
    def spec(self) -> dict[str, Any]:
        """For the script."""
        return {
            "kind": self.kind,
            "x": self.x,
            "y": self.y,
            "labels": self.labels,
            "series": [{"name": s.name, "look": s.look.value, "values": s.values} for s in self.series],
            "logarithmic": self.logarithmic,
            "percent": self.percent,
            "links": self.links,
        }


def curve(record: Mapping[str, Any]) -> Chart | None:
    """The loss on both sides, step by step, with what rounding does to the CPU's."""
    return _curves(record, "loss", "Loss, step by step", "loss")


def gradient_norm(record: Mapping[str, Any]) -> Chart | None:
    """The norm of the gradient on both sides."""
    return _curves(record, "gradient_norm", "Gradient norm, step by step", "gradient norm")


def _curves(record: Mapping[str, Any], name: str, title: str, y: str) -> Chart | None:
    device = _numbers(record.get("curve", {}).get(name, ()))
    cpu = _numbers(record.get("reference_curve", {}).get(name, ()))
    width = _numbers(record.get("envelope", {}).get(name, ()))
    if not device and not cpu:
        return None
    steps = tuple(str(n + 1) for n in range(max(len(device), len(cpu))))
    band = [(c, w) for c, w in zip(cpu, width, strict=False)]
    low = tuple(None if c is None or w is None else c - w for c, w in band)
    high = tuple(None if c is None or w is None else c + w for c, w in band)
    series = (
        Series(name="CPU, least under rounding", look=Look.LOW, values=low),
        Series(name="CPU, most under rounding", look=Look.HIGH, values=high),
        Series(name="CPU", look=Look.CPU, values=cpu),
        Series(name="device", look=Look.DEVICE, values=device),
    )
    return Chart(title=title, kind="line", x="step", y=y, labels=steps, series=series)


def errors(evidence: Mapping[str, Any]) -> Chart | None:
    """Deciding tensors of a parity check by their error in tolerances: from 1 on they are wrong."""
    drawn = evidence.get("histogram", {})
    edges, counts = drawn.get("edges", ()), drawn.get("counts", ())
    if not edges or len(counts) != len(edges) + 1:
        return None
    between = [f"{low:g} to {high:g}" for low, high in pairwise(edges)]
    wrong = [False, *(low >= 1 for low in edges)]
    return Chart(
        title="Error of each tensor, in tolerances",
        kind="bar",
        x="tolerances",
        y="tensors",
        labels=(f"below {edges[0]:g}", *between, f"{edges[-1]:g} and more"),
        series=(
            Series(
                name="within",
                look=Look.PASS,
                values=tuple(None if bad else _number(n) for bad, n in zip(wrong, counts, strict=True)),
            ),
            Series(
                name="wrong",
                look=Look.FAIL,
                values=tuple(_number(n) if bad else None for bad, n in zip(wrong, counts, strict=True)),
            ),
        ),
    )


def fallbacks(record: Mapping[str, Any]) -> Chart | None:
    """The share of the operators' time that was spent on the CPU, operator by operator."""
    ops = record.get("ops", ())
    total = sum(int(one.get("ns", 0)) for one in ops)
    spent: dict[str, int] = {}
    for one in ops:
        if one.get("mechanism") and one.get("ns"):
            spent[str(one["op"])] = spent.get(str(one["op"]), 0) + int(one["ns"])
    if not total or not spent:
        return None
    largest = sorted(spent.items(), key=lambda item: -item[1])[:OPERATORS]
    return Chart(
        title="Time spent in fallbacks",
        kind="bars",
        x="share of the operators' time",
        y="operator",
        labels=tuple(name for name, _ in largest),
        series=(Series(name="on the CPU", look=Look.FAIL, values=tuple(ns / total for _, ns in largest)),),
        percent=True,
    )


def rates(points: Sequence[tuple[str, float | None, float | None, str]]) -> Chart | None:
    """The headline rate over sweeps: (label, low, high, link)."""
    if len(points) < 2:
        return None
    return Chart(
        title="Green, over builds",
        kind="line",
        x="sweep",
        y="of everything registered",
        labels=tuple(label for label, _, _, _ in points),
        series=(
            Series(name="low", look=Look.LOW, values=tuple(low for _, low, _, _ in points)),
            Series(name="high", look=Look.HIGH, values=tuple(high for _, _, high, _ in points)),
        ),
        percent=True,
        links=tuple(link for _, _, _, link in points),
    )


def history(points: Sequence[tuple[str, int]]) -> Chart | None:
    """Entries a cluster blocks, sweep by sweep: (sweep, entries)."""
    if len(points) < 2:
        return None
    blocked = Series(name="entries blocked", look=Look.FAIL, values=tuple(float(n) for _, n in points))
    labels = tuple(name for name, _ in points)
    return Chart(title="Entries it blocks", kind="bar", x="sweep", y="entries", labels=labels, series=(blocked,))


def unlock(curve: Sequence[Mapping[str, Any]], limit: int = 40) -> Chart | None:
    """Green entries after the first k fixes, with what incomplete lists of blockers leave open."""
    steps = curve[:limit]
    if not steps:
        return None
    low = tuple(_number(step["entries"]) for step in steps)
    high = tuple(_number(step["entries_high"]) for step in steps)
    return Chart(
        title="Entries unlocked after k fixes",
        kind="line",
        x="fixes, in the order of the table",
        y="entries turned green",
        labels=tuple(str(n + 1) for n in range(len(steps))),
        series=(
            Series(name="at least", look=Look.LOW, values=low),
            Series(name="at most", look=Look.HIGH, values=high),
        ),
    )


def _numbers(values: Sequence[Any]) -> tuple[float | None, ...]:
    return tuple(_number(value) for value in values)


def _number(value: Any) -> float | None:
    """None for what cannot be drawn."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
