"""The report as one HTML file that needs nothing else: no script, no font, no address is loaded."""

from __future__ import annotations

import time
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from neuronqa.bundled import folder
from neuronqa.report.plain import visible
from neuronqa.report.text import percent, span
from neuronqa.report.value import VERDICTS_ARE_FOR, Report
from neuronqa.report.verdict import Verdict


def render(report: Report, verdict: Verdict | None = None) -> str:
    """A complete document. Everything in it is escaped, and text that would hide or turn is marked."""
    environment = Environment(
        loader=FileSystemLoader(folder("dashboards") / "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters["percent"] = percent
    environment.filters["span"] = span
    environment.filters["day"] = lambda at: time.strftime("%Y-%m-%d", time.gmtime(at))
    template = environment.get_template("report.html")
    steps = report.unlock.get("curve", [])[:40]
    return template.render(
        report=report,
        verdict=verdict,
        verdicts_are_for=VERDICTS_ARE_FOR,
        curve=_points([step["entries"] for step in steps]),
        fixes=len(steps),
        unlocked=steps[-1]["entries"] if steps else 0,
    )


def _finalize(value: Any) -> Any:
    return visible(value) if type(value) is str else value


def _points(values: list[int]) -> str:
    """The curve as points of a polyline in a box of 600 by 100."""
    if not values or not values[-1]:
        return ""
    steps = [0, *values]
    return " ".join(f"{600 * n / len(values):.1f},{100 - 100 * v / values[-1]:.1f}" for n, v in enumerate(steps))
