"""Every format of a report: the same numbers, and nothing in it acts."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from markdown_it import MarkdownIt
from sqlalchemy import Engine

from neuronqa.errors import BadInput
from neuronqa.report import export, github, html, junit, markdown, text
from neuronqa.report.cluster import cluster_json, cluster_page
from neuronqa.report.cluster_text import render as cluster_text
from neuronqa.report.decide import decide
from neuronqa.report.plain import cell, visible, xml
from neuronqa.report.schema import SCHEMA
from neuronqa.report.value import Report, to_json, wilson
from neuronqa.report.verdict import Answer, Verdict
from tests.unit.report.conftest import HOSTILE

ACTS = ("<script", "\x1b", "\u202e", "\x00")


@pytest.fixture
def verdict(engine: Engine, report: Report) -> Verdict:
    with engine.connect() as db:
        return decide(db, report, "green>=80%,runs>=10%", None)


def test_the_json_is_what_its_schema_says(report: Report, verdict: Verdict) -> None:
    body = json.loads(json.dumps(to_json(report, verdict), allow_nan=False))
    jsonschema.validate(body, SCHEMA, cls=jsonschema.Draft202012Validator)
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert body["gates"]["native"]["failed"] == 7
    assert body["gates_by_workloads"]["native"] == {**body["gates_by_workloads"]["native"], "passed": 1, "failed": 2}
    assert body["waivers"][0]["entries"] == 5, "what is waived still fails"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**body, "surprise": 1}, SCHEMA)


def test_nothing_hostile_acts_in_any_text(report: Report, verdict: Verdict, engine: Engine) -> None:
    with engine.connect() as db:
        page = cluster_page(db, "1")
    from rich.console import Console

    console = Console(file=io.StringIO(), width=100, highlight=False)
    with console.capture() as captured:
        console.print(cluster_text(page))
    shown = {
        "text": text.plain(report, verdict),
        "markdown": markdown.render(report, verdict),
        "html": html.render(report, verdict),
        "junit": junit.render(report, verdict),
        "github": github.commands(report, verdict),
        "json": json.dumps(to_json(report, verdict)),
        "cluster": captured.get(),
        "cluster json": json.dumps(cluster_json(page)),
    }
    for name, body in shown.items():
        for mark in ACTS:
            if not (mark == "<script" and name in ("text", "json", "cluster", "cluster json", "github")):
                assert mark not in body, f"{mark!r} in {name}"


def test_markdown_becomes_no_element_of_a_strangers(report: Report, verdict: Verdict) -> None:
    made = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown.render(report, verdict))
    tags = set(re.findall(r"<([a-z0-9]+)", made))
    assert tags <= {
        "h2",
        "h3",
        "p",
        "ul",
        "li",
        "code",
        "strong",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "details",
        "summary",
    }
    assert "alert(1)" in made
    rows = re.findall(r"<tr>(.*?)</tr>", made, re.DOTALL)
    assert {row.count("<t") for row in rows} <= {5, 7}, "no cell was split by a bar"
    assert len(markdown.render(report, verdict)) < 65_536


def test_the_html_needs_nothing_else_and_loads_nothing(report: Report, verdict: Verdict) -> None:
    page = html.render(report, verdict)
    assert not re.search(r"<(script|link|iframe|img|object)|\bsrc=|url\(", page)
    assert "default-src 'none'" in page
    assert "alert(1)" in page


def test_junit_is_well_formed_and_its_counts_are_those_of_its_cases(report: Report, verdict: Verdict) -> None:
    root = ET.fromstring(junit.render(report, verdict).encode())
    assert [int(root.attrib[name]) for name in ("tests", "failures", "errors")] == [
        len(list(root.iter(tag))) for tag in ("testcase", "failure", "error")
    ]
    assert {one.tag for one in root} == {"testsuite"}
    assert all({"name", "classname"} <= set(case.attrib) for case in root.iter("testcase"))
    assert not list(root.iter("skipped")), "not run is no skip"
    names = [case.attrib["name"] for case in root.iter("testcase")]
    assert any("alert(1)" in name for name in names)


def test_workflow_commands_are_one_a_line_and_none_is_a_strangers(report: Report, verdict: Verdict) -> None:
    lines = github.commands(report, verdict).splitlines()
    assert all(re.fullmatch(r"::(error|warning|notice) title=[^:]*::[^\x1b]*", line) for line in lines)


def test_a_parquet_file_reads_back_as_the_sweep_it_was_written_from(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "entries.parquet"
    with engine.connect() as db:
        assert export.write(db, "one", path) == 10
        assert export.read(path).entries.keys() == export.side(db, "one").entries.keys()
        same = export.side(db, str(path))
    assert (same.name, same.registered) == ("one", 10)
    assert HOSTILE in same.entries


@pytest.mark.parametrize("body", [b"", b"PAR1", b"not parquet at all"])
def test_what_is_no_export_is_bad_input(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "other.parquet"
    path.write_bytes(body)
    with pytest.raises(BadInput, match="no export"):
        export.read(path)


@pytest.mark.parametrize("text_", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "\u202e=1"])
def test_no_cell_is_a_formula(text_: str) -> None:
    assert not cell(text_).startswith(("=", "+", "-", "@", "\t", "\r"))


def test_numbers_and_plain_texts_stay_as_they_are_in_a_cell() -> None:
    assert [cell(value) for value in (-1, 1.5, None, "plain", "a=b")] == [-1, 1.5, None, "plain", "a=b"]


def test_what_xml_may_not_hold_is_marked() -> None:
    assert xml("a\x00b\x0bc\ud800d\ufffee\tf\x7f") == "a\ufffdb\ufffdc\ufffdd\ufffde\tf\ufffd"
    assert visible("a\x1b[0m\u202eb\n") == "a\ufffd[0m\ufffdb "


@pytest.mark.parametrize(
    ("share", "n", "low", "high"), [(0.0, 10, 0.0, 0.2775), (1.0, 10, 0.7225, 1.0), (0.5, 100, 0.4038, 0.5962)]
)
def test_wilsons_interval(share: float, n: int, low: float, high: float) -> None:
    assert wilson(share, n) == pytest.approx((low, high), abs=1e-4)


def test_a_gate_that_a_failure_has_decided_says_so(verdict: Verdict) -> None:
    assert verdict.answer is Answer.DO_NOT_SHIP
    assert "cannot hold any more" in verdict.reasons[0]
    assert "holds" in verdict.reasons[1]
