"""The pages in a real browser: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, sync_playwright

from neuronqa.dashboard.access import Access
from neuronqa.dashboard.app import create_app
from neuronqa.db.engine import open_engine
from tests.unit.dashboard.conftest import fill

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HINT = "Chromium is not installed: install it (Debian: apt install chromium)"


@dataclass(frozen=True)
class Site:
    """A server of pages, and its database."""

    url: str
    database: Path


@contextmanager
def served(database: Path) -> Iterator[Site]:
    reader, writer = open_engine(str(database), read_only=True), open_engine(str(database))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(create_app(reader, Access(), writer), log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield Site(f"http://127.0.0.1:{listener.getsockname()[1]}", database)
        server.should_exit = True
        thread.join()
    reader.dispose()
    writer.dispose()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    database = tmp_path_factory.mktemp("browser") / "filled.db"
    fill(database).dispose()
    with served(database) as found:
        yield found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.fail(HINT, pytrace=False)
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    """A page that must not complain: a script's error, or anything the policy blocked, fails the test."""
    context = browser.new_context(base_url=site.url, viewport={"width": 1360, "height": 900}, accept_downloads=True)
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    opened.on("response", lambda answer: complaints.append(answer.url) if answer.status >= 400 else None)
    opened.on("dialog", lambda dialog: complaints.append(f"dialog {dialog.message}"))
    yield opened
    context.close()
    assert complaints == []
