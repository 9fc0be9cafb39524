"""The report for a GitHub workflow: annotations on stdout, and the Markdown report as the step's summary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from neuronqa.report.plain import command as safe
from neuronqa.report.plain import command_property as title
from neuronqa.report.text import span
from neuronqa.report.value import Report
from neuronqa.report.verdict import Answer, Verdict

SHOWN: Final = 10
"""Annotations of a kind a step may show. (docs.github.com, workflow commands)"""


def commands(report: Report, verdict: Verdict | None = None) -> str:
    """One workflow command a line."""
    return "\n".join(_commands(report, verdict)) + "\n"


def _commands(report: Report, verdict: Verdict | None) -> Iterator[str]:
    if verdict is not None:
        kinds = {Answer.SHIP: "notice", Answer.DO_NOT_SHIP: "error", Answer.CANNOT_TELL: "error"}
        text = "; ".join(verdict.reasons)
        yield f"::{kinds[verdict.answer]} title={title(f'NeuronQA: {verdict.answer.value}')}::{safe(text)}"
    yield f"::notice title=NeuronQA::{safe(f'{span(report.honest)} green of {report.catalog.registered:,} registered')}"
    for rung, why in report.withheld.items():
        yield f"::error title={title(f'NeuronQA: withheld from {rung.value} up')}::{safe(why)}"
    for one in report.causes[: SHOWN - 1]:
        text = f"blocks {one.entries:,} entries, {one.sole_entries:,} by itself (cluster {one.cluster.key})"
        yield f"::warning title={title(str(one.cluster.outcome))}::{safe(text)}"
