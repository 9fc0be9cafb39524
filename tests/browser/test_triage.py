"""A person triages a sweep in the browser: with the mouse, with the keyboard, on a phone, in the dark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from neuronqa.db import clusters, queries
from neuronqa.db.engine import open_engine
from neuronqa.db.store import Store
from neuronqa.domain.cluster import State
from neuronqa.sweep.conclude import conclude
from neuronqa.triage.settle import triage
from tests.browser.conftest import Site, served
from tests.builders import COMPILED, EAGER, open_sweep, record, summary, workload
from tests.unit.dashboard.conftest import NEEDED, fill

PAGES = (
    *("/", "/clusters", "/clusters/1", "/models?missed=parity", "/models/2", f"/ops/{NEEDED}", "/workloads"),
    *("/cases", "/cases/3", "/compare", "/sweeps", "/controls"),
)
LIVE_MS = 20_000
SERIOUS = ("serious", "critical")


def test_the_whole_triage(page: Page, site: Site) -> None:
    page.goto("/")
    expect(page.get_by_role("heading", name="Ladder")).to_be_visible()
    page.get_by_role("navigation", name="Lanes").get_by_text("compile/fp32/train").click()
    expect(page).to_have_url(re.compile("lane=compile"))
    _filter_sort_search(page)
    _act(page, site)
    page.get_by_role("link", name="Compare", exact=True).click()
    expect(page.get_by_text("failing", exact=True)).to_be_visible()


def _filter_sort_search(page: Page) -> None:
    page.get_by_role("link", name="Models", exact=True).click()
    page.get_by_role("complementary", name="Filters").get_by_role("link", name="parity 20").click()
    expect(page.get_by_text("41 hidden by the filters")).to_be_visible()
    page.get_by_label("Search models").fill("/1")
    page.keyboard.press("Enter")
    expect(page.locator("main table.data tbody tr")).to_have_count(11)
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert len(download.value.path().read_text().splitlines()) >= 12
    page.get_by_role("link", name="Clear all").click()
    expect(page.get_by_role("status")).to_contain_text("61 models")
    page.get_by_role("link", name="rank").click()
    expect(page.locator("main table.data tbody tr td").first).to_have_text("61")


def _act(page: Page, site: Site) -> None:
    page.get_by_role("link", name="Clusters", exact=True).click()
    page.get_by_role("link", name="parity:nan").first.click()
    named = page.url.partition("?")[0].rpartition("/")[2]
    page.get_by_label("Assign to").fill("ada")
    page.get_by_role("button", name="Assign").click()
    expect(page.get_by_text("ada", exact=True)).to_be_visible()
    page.get_by_label("Mute because").fill("known; fixed upstream")
    page.get_by_role("button", name="Mute").click()
    expect(page.get_by_text("It still counts as failing.")).to_be_visible()
    with open_engine(str(site.database)).connect() as db:
        kept = clusters.cluster(db, named)
    assert (kept.assignee, kept.state) == ("ada", State.MUTED)
    page.get_by_role("button", name="Unmute").click()
    expect(page.get_by_role("button", name="Mute", exact=True)).to_be_visible()


def test_rows_are_walked_and_opened_with_the_keyboard(page: Page) -> None:
    page.goto("/models")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/models/1\?"))
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("c")
    page.wait_for_url(re.compile("/clusters"), wait_until="load")
    page.keyboard.press("/")
    expect(page.get_by_label("Search clusters")).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_barrier_or_grows_wider_than_a_phone(page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": 390, "height": 844})
    axe = Axe()
    barriers = []
    for path in PAGES:
        page.goto(path)
        found = axe.run(page).response["violations"]
        barriers += [
            (path, one["id"], [node["html"][:200] for node in one["nodes"]][:3])
            for one in found
            if one["impact"] in SERIOUS
        ]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    assert barriers == []


def test_a_sweep_that_runs_is_watched_without_a_reload_until_it_has_ended(browser: Browser, tmp_path: Path) -> None:
    database = tmp_path / "live.db"
    engine = fill(database)
    store = Store(engine)
    with engine.connect() as db:
        plan_id = queries.sweep(db).plan_id
    sweep_id = open_sweep(store, plan_id, name="three")
    records = [record(workload("good"), variant, take="three") for variant in (EAGER, COMPILED)]
    store.plan_cases(sweep_id, [one.case for one in records])
    with served(database) as site:
        page = browser.new_page(base_url=site.url)
        page.goto("/")
        expect(page.get_by_text("0 of 2 cases")).to_be_visible()
        page.evaluate("window.same = true")
        store.write(sweep_id, records[:1])
        expect(page.get_by_text("1 of 2 cases")).to_be_visible(timeout=LIVE_MS)
        assert page.evaluate("window.same"), "the page was loaded anew"
        store.write(sweep_id, records[1:])
        store.finish_sweep(sweep_id, "done", 1.0, summary(planned=1))
        expect(page.get_by_text("done")).to_be_visible(timeout=LIVE_MS)
        conclude(store, "three")
        triage(engine, "three")
        expect(page.get_by_role("heading", name="Ladder")).to_be_visible(timeout=LIVE_MS)
        page.close()
    engine.dispose()
