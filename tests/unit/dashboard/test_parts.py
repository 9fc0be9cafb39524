"""The small parts of the pages: addresses, text made inert, charts, news, assets."""

from __future__ import annotations

import asyncio
import hashlib
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from neuronqa.bundled import folder
from neuronqa.dashboard import charts, live
from neuronqa.dashboard.address import address
from neuronqa.dashboard.plain import SHOWN, cell, visible
from neuronqa.dashboard.render import Renderer
from neuronqa.db.engine import open_engine

VENDORED = {
    "chart.umd.min.js": "fae96e55c6daa9ea7b3f60b6e6ea153904f510f6e00f59ed5ba3be21df231cd2",
    "htmx.min.js": "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717",
    "sse.min.js": "98a46496de0c3605fbffdce9167ba427bdd9553184f83f149c261891a92c0136",
}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("ünïcode 漢字", "ünïcode 漢字"),
        ("two\nlines\tapart", "two\nlines\tapart"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\u202eb\u2066c\u200d", "a\\u202eb\\u2066c\\u200d"),
        ("\ud800\U000e0041", "\\ud800\\U000e0041"),
        ("a\u2028b\x00\x85", "a\\u2028b\\x00\\x85"),
    ],
)
def test_what_hides_or_reorders_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_long_text_is_cut_and_says_so() -> None:
    assert visible("x" * (SHOWN + 1)) == "x" * SHOWN + f" … ({SHOWN + 1:,} characters in all)"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", " =1", "\n@x"])
def test_no_text_is_a_formula(text: str) -> None:
    assert str(cell(text))[0] == "'"
    assert (cell(-1), cell(None), cell("a=b")) == (-1, None, "a=b")


def test_an_address_is_changed_one_parameter_at_a_time_and_goes_back_to_the_first_page() -> None:
    at = address("/models", [("sweep", "s"), ("missed", "parity"), ("after", "c"), ("q", "")])
    assert str(at.toggle("missed", "native")) == "/models?sweep=s&missed=parity&missed=native"
    assert str(at.toggle("missed", "parity")) == "/models?sweep=s"
    assert str(at.put("q", "a b&c")) == "/models?sweep=s&missed=parity&q=a+b%26c"
    assert str(at.bare()) == "/models?sweep=s"
    assert str(at.as_format("csv")) == "/models.csv?sweep=s&missed=parity"
    assert str(at.sorted_by("rank").sorted_by("rank")) == "/models?sweep=s&missed=parity&sort=-rank"
    assert at.ask.filters == {"missed": ("parity",)}
    assert address("/overview.json", []).path == "/"


def test_a_curve_is_drawn_with_its_envelope_and_gaps_where_a_number_is_none() -> None:
    record = {
        "curve": {"loss": [2.0, float("nan")]},
        "reference_curve": {"loss": [2.0, 1.0]},
        "envelope": {"loss": [0.5, 0.25]},
    }
    drawn = charts.curve(record)
    assert drawn is not None
    assert {one.look.value: one.values for one in drawn.series} == {
        "low": (1.5, 0.75),
        "high": (2.5, 1.25),
        "cpu": (2.0, 1.0),
        "device": (2.0, None),
    }
    assert charts.curve({}) is None


def test_errors_are_drawn_on_either_side_of_the_tolerance() -> None:
    drawn = charts.errors({"histogram": {"edges": [0.1, 1, 10], "counts": [5, 3, 2, 1]}})
    assert drawn is not None
    assert drawn.labels == ("below 0.1", "0.1 to 1", "1 to 10", "10 and more")
    assert [one.values for one in drawn.series] == [(5, 3, None, None), (None, None, 2, 1)]
    assert charts.errors({"words": "none"}) is None


def test_fallbacks_are_drawn_as_their_share_of_the_time() -> None:
    ops = [{"op": "a", "mechanism": 0, "ns": 60}, {"op": "b", "mechanism": 1, "ns": 30}, {"op": "b", "ns": 0}]
    ops.append({"op": "c", "mechanism": 2, "ns": 10})
    drawn = charts.fallbacks({"ops": ops})
    assert drawn is not None
    assert dict(zip(drawn.labels, drawn.series[0].values, strict=True)) == {"b": 0.3, "c": 0.1}
    assert charts.fallbacks({"ops": ops[:1]}) is None


def test_news_of_a_sweep_that_has_ended_is_its_progress_and_its_end(filled: Path) -> None:
    async def all_of() -> list[str]:
        engine = open_engine(str(filled), read_only=True)
        return [one async for one in live.events(engine, Renderer(folder("dashboards")), "one", pace=0.01)]

    with ThreadPoolExecutor() as apart:  # a browser's loop may still run in this thread
        said = apart.submit(asyncio.run, all_of()).result()
    assert [re.match("event: (.*)", one)[1] for one in said if re.match("event: (.*)", one)] == ["progress", "done"]  # type: ignore[index]
    assert all(one.endswith("\n\n") for one in said)


def test_no_line_of_an_events_data_is_taken_for_an_event() -> None:
    assert live.event("progress", "a\nevent: done\n\ndata: x") == (
        "event: progress\ndata: a\ndata: event: done\ndata: \ndata: data: x\n\n"
    )


@pytest.mark.parametrize("name", VENDORED)
def test_a_vendored_script_is_the_published_one(name: str) -> None:
    body = (folder("dashboards") / "static" / "vendor" / name).read_bytes()
    assert hashlib.sha256(body).hexdigest() == VENDORED[name]


def test_pages_need_nothing_from_anywhere_else() -> None:
    for path in folder("dashboards").rglob("*"):
        if path.suffix in (".html", ".css") or path.name == "app.js":
            text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
            assert not re.search(r"""(?:https?:)?//[\w.-]+\.\w|@import|url\(""", text), path
