"""When a real browser first shows something of a page, and what it loads for it:

    python -m tests.benchmark.paint DATABASE [TIMES]

Every page is opened in a context of its own, so that nothing is cached. Prints JSON: milliseconds to the first
contentful paint at the median and the worst, and kB transferred, compressed as they came.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from neuronqa.db.engine import open_engine
from tests.benchmark.pages import pages
from tests.browser.conftest import CHROMIUM, served

TIMES = 5
SEEN = """() => ({
    paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null,
    bytes: [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
        .reduce((sum, one) => sum + one.transferSize, 0),
})"""


def measure(browser: Browser, url: str, times: int) -> dict[str, Any]:
    paints, heaviest = [], 0
    for _ in range(times):
        page = browser.new_page(bypass_csp=True)  # to ask the page; what it may load stays the same
        page.goto(url, wait_until="load")
        page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
        seen = page.evaluate(SEEN)
        page.close()
        paints.append(float(seen["paint"]))
        heaviest = max(heaviest, int(seen["bytes"]))
    return {
        "median_ms": round(statistics.median(paints)),
        "worst_ms": round(max(paints)),
        "kb": round(heaviest / 1000, 1),
    }


def main(path: str, times: int) -> None:
    engine = open_engine(path, read_only=True)
    with engine.connect() as db:
        asked = list(dict.fromkeys(one.partition("?")[0] for one in pages(db)))
    engine.dispose()
    with served(Path(path)) as site, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        measure(browser, site.url, 1)
        found = {one: measure(browser, f"{site.url}{one}", times) for one in asked}
        browser.close()
    worst = {name: max(one[name] for one in found.values()) for name in ("median_ms", "worst_ms", "kb")}
    print(json.dumps({"pages": found, "over_all": worst}, indent=2))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else TIMES)
