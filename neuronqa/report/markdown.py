"""The report as Markdown, to fit a pull request's comment."""

from __future__ import annotations

import time
from collections.abc import Iterable

from neuronqa.domain.catalog import Source
from neuronqa.domain.ladder import Gate
from neuronqa.report.plain import markdown as safe
from neuronqa.report.text import percent, span
from neuronqa.report.value import VERDICTS_ARE_FOR, Report
from neuronqa.report.verdict import Verdict

LIMIT = 60_000
"""Characters: a comment holds 65,536."""


def render(report: Report, verdict: Verdict | None = None) -> str:
    """The whole report; where it would not fit a comment, tables end early and say so."""
    parts = [
        *_head(report),
        *(_verdict(verdict) if verdict else ()),
        *_ladder(report),
        *_beside(report),
        *_causes(report),
        *_waivers(report),
        *_flattering(report),
    ]
    text = "\n".join(parts) + "\n"
    return text if len(text) <= LIMIT else text[: LIMIT - 60].rpartition("\n")[0] + "\n\n(cut to fit a comment)\n"


def _head(report: Report) -> list[str]:
    catalog = report.catalog
    source = "synthetic: generated here, not the Hub's list" if catalog.source is Source.SYNTHETIC else catalog.source
    registered = f"Of {catalog.registered:,} entries registered in **{safe(catalog.name)}** (source: {source})"
    device = f"{safe(report.device)}, profile {safe(report.profile)}, build `{report.build[:12]}`"
    policy = f"policy {safe(report.policy.name)}{' (narrowed: partial)' if report.partial else ''}"
    controls = f"**{report.controls}**" if report.controls.missed else str(report.controls)
    audit = f"{report.audit_disagreed} of {report.audit_drawn} inherited verdicts disagreed"
    lines = [
        f"## NeuronQA: {span(report.honest)} green",
        "",
        f"{registered}, judged as {VERDICTS_ARE_FOR}.",
        "",
        f"- sweep `{report.sweep}`, {device}, {policy}",
        f"- controls: {controls}",
        f"- audit: {audit} (at most {percent(report.audit_bound)} wrong, 95 %)",
    ]
    lines += [f"- **withheld from {rung.value} up**: {safe(why)}" for rung, why in report.withheld.items()]
    return [*lines, ""]


def _beside(report: Report) -> Iterable[str]:
    if not report.beside:
        return
    yield from ("### Beside what was published", "", "| figure | published | here | error |", "|---|---:|---:|---:|")
    for one in report.beside:
        error = "-" if one.error is None else f"{one.error * 100:+.1f} %"
        label = " (modelled)" if one.modelled else ""
        yield f"| {safe(one.what)} | {one.published:g} {one.unit} | {one.here:.6g} {one.unit}{label} | {error} |"
    yield ""


def _verdict(verdict: Verdict) -> Iterable[str]:
    yield f"### {verdict.answer.value.capitalize()}"
    yield ""
    yield from (f"- {safe(reason)}" for reason in verdict.reasons)
    if verdict.runs:
        yield ""
        yield "What would decide, cheapest first:"
        yield ""
        yield from (f"- {safe(run.why)}: `{run.command}`" for run in verdict.runs)
    yield ""


def _ladder(report: Report) -> Iterable[str]:
    yield "| rung | passed | failed | not run | of entries | of downloads | of workloads |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for gate, downloads, workloads in zip(report.gates, report.download_gates, report.workload_gates, strict=True):
        counts = f"{gate.passed:,} | {gate.failed:,} | {gate.not_run:,}"
        yield f"| {gate.rung.value} | {counts} | {span(gate)} | {span(downloads)} | {_span(workloads)} |"
    yield ""


def _span(gate: Gate) -> str:
    return span(gate) if gate.registered else "-"


def _causes(report: Report) -> Iterable[str]:
    if not report.causes:
        return
    yield f"### Fix next (top {len(report.causes)} of {report.cause_count})"
    yield ""
    yield "| # | cause | at fault | state | entries | by it alone | green after it |"
    yield "|--:|---|---|---|--:|--:|--:|"
    for one in report.causes:
        numbers = f"{one.entries:,} | {one.sole_entries:,} | {one.unlocked_entries:,}"
        cause = safe(str(one.cluster.outcome))
        yield f"| {one.place} | {cause} | {one.cluster.at_fault.value} | {one.state.value} | {numbers} |"
    yield ""


def _waivers(report: Report) -> Iterable[str]:
    if not report.waivers:
        return
    yield "### Waived, and still counted as failing"
    yield ""
    yield "| cause | owner | reason | until | entries |"
    yield "|---|---|---|---|--:|"
    for one in report.waivers:
        until = time.strftime("%Y-%m-%d", time.gmtime(one.expires))
        yield f"| {safe(one.outcome)} | {safe(one.owner)} | {safe(one.reason)} | {until} | {one.entries:,} |"
    yield ""


def _flattering(report: Report) -> Iterable[str]:
    yield "<details><summary>Rates others would print from the same rows</summary>"
    yield ""
    for rate in report.flattering:
        shown = "-" if rate.rate is None else percent(rate.rate)
        yield f"- {rate.name}: {shown}, leaves out {rate.leaves_out}"
    yield ""
    yield "</details>"
