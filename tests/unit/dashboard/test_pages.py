"""Every page answers, in HTML and as data, and nothing a stranger wrote is more than text on any of them."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser
from typing import Any

import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from neuronqa.dashboard.pages import PAGES
from neuronqa.db import queries
from neuronqa.db.browse import ladder
from neuronqa.db.engine import open_engine
from tests.unit.dashboard.conftest import FORMULA, HOSTILE, NEEDED

LISTINGS = "/sweeps /controls /clusters /queue /members /models /ops /worksheet /needing /workloads /cases"
FOLLOWED = 60
"""Pages a crawl looks at, at most."""


class Reader(HTMLParser):
    """Elements, attributes and links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.links: list[str] = []
        self.sources: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        found = dict(attrs)
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))
        if tag in ("script", "img", "link"):
            self.sources.append(str(found.get("src") or found.get("href")))


def crawl(site: TestClient) -> dict[str, str]:
    """Pages by address, from the overview on. No URL can say a lone surrogate, so links that would are left out."""
    queue = ["/"]
    seen: dict[str, str] = {}
    while queue and len(seen) < FOLLOWED:
        at = queue.pop(0)
        if at in seen or not at.startswith("/") or re.search(r"\.(json|csv|parquet)\b", at.partition("?")[0]):
            continue
        answer = site.get(at)
        assert answer.status_code == 200, (at, answer.text[-300:])
        seen[at] = answer.text
        queue += [link for link in Reader(answer.text).links if "ud800" not in link]
    return seen


def test_nothing_a_stranger_wrote_is_more_than_text_on_any_page(site: TestClient) -> None:
    pages = crawl(site)
    assert {re.sub(r"[/?].*", "", at[1:]) for at in pages} >= {"", "clusters", "models", "ops", "workloads", "cases"}
    quoted = 0
    for at, text in pages.items():
        read = Reader(text)
        assert "img" not in read.tags, at
        assert all(source.startswith("/static/") for source in read.sources), at
        assert not [name for name, _ in read.attributes if name.startswith("on") or name == "style"], at
        assert not [value for name, value in read.attributes if name == "href" and "javascript:" in value.lower()], at
        assert not set("\x1b\u202e\ud800") & set(text), at
        quoted += "&lt;script&gt;alert(1)" in text
        assert len(text) < 300_000, at
    assert quoted > 20


@pytest.mark.parametrize("path", [path for path in PAGES if "{" not in path])
def test_a_page_has_a_twin_in_json(site: TestClient, path: str) -> None:
    said = site.get(f"{path}.json").json()
    assert said["schema_version"] == 1
    assert len(said) > 1


@pytest.mark.parametrize(
    ("path", "holds"),
    [
        ("/clusters/1", {"cluster", "members", "models", "journal", "key"}),
        ("/models/2", {"model", "blockers", "failed"}),
        ("/cases/3", {"attempt", "results", "record"}),
        (f"/ops/{NEEDED}", {"op", "uses", "worksheet", "models", "workloads"}),
        ("/queue/1", {"title", "state", "submissions", "journal"}),
        ("/compare?base=one&head=two", {"base", "head"}),
    ],
)
def test_what_a_page_shows_of_one_thing_is_in_its_twin(site: TestClient, path: str, holds: set[str]) -> None:
    page, _, query = path.partition("?")
    assert holds <= set(site.get(f"{page}.json?{query}").json())
    assert site.get(path).status_code == 200


def test_the_queue_shows_operators_what_agents_are_not_told(site: TestClient) -> None:
    said = site.get("/queue.json").json()
    assert said["states"] == {"queued": 1, "leased": 1}
    assert [one["held"] for one in said["agents"]] == [1]
    item = site.get("/queue/1.json").json()
    assert item["submissions"][0]["verdict"]["reason"] == "values"
    assert item["submissions"][0]["note"]
    assert [event["after"] for event in item["journal"]] == ["queued", "verifying", "submitted", "leased", "queued"]


def test_the_overview_shows_the_ladder_that_the_database_holds(site: TestClient, filled: Any) -> None:
    with open_engine(str(filled), read_only=True).connect() as db:
        gates = ladder.whole(db, queries.sweep(db))
    said = site.get("/overview.json").json()
    assert [(one["rung"], one["passed"], one["failed"]) for one in said["lanes"]["all"]] == [
        (gate.rung.value, gate.passed, gate.failed) for gate in gates
    ]
    assert said["trust"]["source"] == "synthetic"
    assert "source: synthetic" in site.get("/").text


def test_filters_and_facets_agree_and_say_what_they_hide(site: TestClient) -> None:
    everything = site.get("/models.json").json()
    assert (everything["count"], everything["hidden"]) == (61, 0)
    for one in everything["facets"]["missed"]:
        some = site.get("/models.json", params={"missed": one["value"]}).json() if one["value"] else None
        if some is not None:
            assert (some["count"], some["hidden"]) == (one["count"], 61 - one["count"])
    page = site.get("/models", params={"missed": "parity"}).text
    assert "41 hidden by the filters" in page
    assert "Clear all" in page


@pytest.mark.parametrize("path", ["/models", "/cases", "/workloads", "/clusters", "/queue", "/ops"])
def test_pages_of_a_listing_hold_every_row_once(site: TestClient, path: str) -> None:
    whole = site.get(f"{path}.json", params={"limit": 500}).json()
    rows: list[Any] = []
    cursor = ""
    while True:
        page = site.get(f"{path}.json", params={"limit": 2, "after": cursor}).json()
        rows += page["rows"]
        cursor = page["next"]
        if not cursor:
            break
    assert rows == whole["rows"]
    assert len(rows) == whole["count"]


def test_every_sort_of_a_listing_has_its_opposite(site: TestClient) -> None:
    for name in ("place", "entries", "downloads"):
        there = [row["id"] for row in site.get("/clusters.json", params={"sort": name}).json()["rows"]]
        back = [row["id"] for row in site.get("/clusters.json", params={"sort": f"-{name}"}).json()["rows"]]
        assert sorted(there) == sorted(back)
    with_arrow = site.get("/clusters", params={"sort": "-entries"}).text
    assert 'href="/clusters?sort=entries"' in with_arrow


def test_messages_are_searched_by_their_words(site: TestClient) -> None:
    assert site.get("/cases.json", params={"q": "alert onerror"}).json()["count"] == 1
    assert site.get("/cases.json", params={"q": "alert nowhere"}).json()["count"] == 0
    assert site.get("/cases.json", params={"q": '"quoted" OR (unbalanced'}).status_code == 200


def test_a_csv_has_every_row_and_no_formula(site: TestClient) -> None:
    answer = site.get("/models.csv", params={"limit": 2})
    rows = list(csv.reader(io.StringIO(answer.text)))
    assert len(rows) == 62
    assert answer.headers["content-disposition"] == 'attachment; filename="neuronqa-models.csv"'
    cells = [cell for row in rows for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert any(cell.startswith("'=HYPERLINK") for cell in cells)
    assert "\x1b" not in answer.text


@pytest.mark.parametrize("path", LISTINGS.split())
def test_every_table_is_exported_in_both_formats_with_the_rows_that_were_asked_for(site: TestClient, path: str) -> None:
    expected = site.get(f"{path}.json", params={"limit": 500}).json()["rows"]
    lines = list(csv.reader(io.StringIO(site.get(f"{path}.csv").text)))
    table = pq.read_table(io.BytesIO(site.get(f"{path}.parquet").content))
    assert len(lines) - 1 == table.num_rows == len(expected)
    if expected:
        assert set(lines[0]) == set(table.column_names) == set(expected[0])


def test_a_page_without_a_table_says_so(site: TestClient) -> None:
    assert site.get("/models/1.csv").status_code == 404


NOWHERE = (
    "/nothing /models/999 /clusters/999 /clusters/%3Cscript%3E /cases/999 /workloads/nope /models?nope=1 "
    "/models?sort=nope /models?after=nope /models?limit=0 /?sweep=nope /?lane=nope /?weight=nope /controls?q=x "
    "/models?cluster=x /ops/nope"
)


@pytest.mark.parametrize("path", NOWHERE.split())
def test_what_is_not_there_is_said_in_one_line(site: TestClient, path: str) -> None:
    page, query = path.partition("?")[::2]
    answer = site.get(path)
    assert answer.status_code == 404
    assert "Not found" in answer.text
    assert "<script>alert" not in answer.text
    if page != "/":
        assert set(site.get(f"{page}.json?{query}").json()) == {"schema_version", "error", "hint"}


def test_json_holds_what_was_written_exactly(site: TestClient) -> None:
    case = json.loads(site.get("/cases/3.json").text)
    evidence = next(one["evidence"] for one in case["results"] if one["check"] == "parity")
    assert evidence["message"] == FORMULA
    assert evidence["words"].startswith(HOSTILE)
    assert len(evidence["words"]) > 1_000_000


def test_two_sweeps_of_one_build_differ_in_nothing(site: TestClient) -> None:
    said = site.get("/compare.json", params={"base": "one", "head": "two"}).json()
    assert said["entries"] == {"failing": 41, "green": 20}
    assert said["changes"]["count"] == 0
    assert "different plans" not in site.get("/compare").text
