"""The report as JUnit XML: a suite a rung, a case a cluster and the rung itself, for whatever shows test results.

A rung that fails is a failure, one that nobody can tell of an error, and neither is ever a skip.
"""

from __future__ import annotations

from xml.etree import ElementTree as ET

from neuronqa.domain.ladder import Gate
from neuronqa.report.plain import xml as safe
from neuronqa.report.text import span
from neuronqa.report.value import Report
from neuronqa.report.verdict import Answer, Verdict


def render(report: Report, verdict: Verdict | None = None) -> str:
    """One document. Counts in it are of its own cases; the rates are in their texts."""
    root = ET.Element("testsuites", name=f"neuronqa {report.sweep}")
    if verdict is not None:
        suite = _suite(root, "verdict", report)
        one = _case(suite, "verdict", "ship")
        if verdict.answer is not Answer.SHIP:
            tag = "failure" if verdict.answer is Answer.DO_NOT_SHIP else "error"
            _said(one, tag, verdict.answer.value, "\n".join(verdict.reasons))
    for gate in report.gates:
        suite = _suite(root, gate.rung.value, report)
        _rung(suite, gate)
        for found in (one for one in report.causes if one.cluster.rung is gate.rung):
            one = _case(suite, gate.rung.value, f"cause {found.cluster.key}: {found.cluster.outcome}")
            text = f"blocks {found.entries:,} of {gate.registered:,} entries, {found.sole_entries:,} by itself"
            _said(one, "failure", text, f"{text}\nat fault: {found.cluster.at_fault.value}\nstate: {found.state.value}")
    for suite in root:
        for tag, name in (("testcase", "tests"), ("failure", "failures"), ("error", "errors")):
            suite.set(name, str(len(list(suite.iter(tag)))))
        suite.set("skipped", "0")
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _rung(suite: ET.Element, gate: Gate) -> None:
    one = _case(suite, gate.rung.value, "every registered entry")
    counts = f"passed {gate.passed:,}, failed {gate.failed:,}, not run {gate.not_run:,}"
    text = f"{counts} of {gate.registered:,}: {span(gate)}"
    if gate.failed:
        _said(one, "failure", text, text)
    elif gate.not_run or gate.low is None:
        _said(one, "error", text, text)


def _suite(root: ET.Element, name: str, report: Report) -> ET.Element:
    return ET.SubElement(root, "testsuite", name=safe(name), time=f"{report.wall_s:.3f}")


def _case(suite: ET.Element, group: str, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=f"neuronqa.{safe(group)}", name=safe(name), time="0")


def _said(case: ET.Element, tag: str, message: str, text: str) -> None:
    ET.SubElement(case, tag, message=safe(message), type=tag).text = safe(text)
