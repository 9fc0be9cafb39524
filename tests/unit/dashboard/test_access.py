"""Who may read and who may write."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from neuronqa.dashboard.access import Access
from neuronqa.dashboard.app import create_app
from neuronqa.db import clusters
from neuronqa.db.engine import open_engine
from neuronqa.errors import EnvironmentFault
from tests.unit.dashboard.conftest import HERE

TOKEN = "a-token-of-some-length"
Site = Callable[..., TestClient]


@pytest.fixture
def place(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(filled, tmp_path / "own.db"))


@pytest.fixture
def site(place: Path) -> Iterator[Site]:
    engines = []

    def make(access: Access | None = None, base: str = HERE) -> TestClient:
        engines.append(open_engine(str(place), read_only=True))
        engines.append(open_engine(str(place)))
        return TestClient(create_app(engines[-2], access or Access(), engines[-1]), base_url=base)

    yield make
    for engine in engines:
        engine.dispose()


def form(client: TestClient, **changed: str) -> dict[str, str]:
    """The hidden fields of a cluster's form, and what a person adds."""
    page = client.get("/clusters/1").text
    hidden = dict(re.findall(r'name="(key|version|sweep)" value="([^"]*)"', page))
    return {**hidden, **changed}


def assignee(place: Path) -> str:
    with open_engine(str(place)).connect() as db:
        return clusters.cluster(db, "1").assignee


def test_a_form_of_ours_writes_and_its_page_shows_it(site: Site, place: Path) -> None:
    client = site()
    answer = client.post("/clusters/1/assign", data=form(client, who="<b>ada</b>"))
    assert answer.status_code == 200
    assert "&lt;b&gt;ada&lt;/b&gt;" in answer.text
    assert "<strong>assigned</strong>" in answer.text
    assert assignee(place) == "<b>ada</b>"


@pytest.mark.parametrize(
    ("action", "fields", "then"),
    [
        ("mute", {"reason": "known", "days": "3"}, ">muted<"),
        ("mark", {"state": "expected"}, ">expected<"),
        ("merge", {"into": "2"}, "aten::"),
    ],
)
def test_every_action_leads_to_a_page_that_shows_it(site: Site, action: str, fields: dict[str, str], then: str) -> None:
    client = site()
    answer = client.post(f"/clusters/1/{action}", data=form(client, **fields))
    assert answer.status_code == 200, answer.text
    assert then in answer.text


def test_a_page_that_was_overtaken_does_not_write(site: Site, place: Path) -> None:
    client = site()
    early = form(client, who="late")
    assert client.post("/clusters/1/assign", data=form(client, who="first")).status_code == 200
    answer = client.post("/clusters/1/assign", data=early)
    assert answer.status_code == 409
    assert "Changed meanwhile" in answer.text
    assert assignee(place) == "first"


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"version": "x"}, 400),
        ({"days": "0"}, 400),
        ({"days": "9999"}, 400),
        ({"reason": ""}, 400),
        ({"key": "guessed"}, 403),
        ({"key": ""}, 403),
    ],
)
def test_a_form_that_says_nonsense_is_refused(site: Site, changed: dict[str, str], status: int) -> None:
    client = site()
    fields = {**form(client, reason="r", days="3"), **changed}
    assert client.post("/clusters/1/mute", data=fields).status_code == status


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_another_site_does_not_write(site: Site, place: Path, headers: dict[str, str]) -> None:
    client = site()
    assert client.post("/clusters/1/assign", data=form(client, who="eve"), headers=headers).status_code == 403
    assert assignee(place) == ""


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "10.0.0.1", ""])
def test_another_name_for_this_machine_reads_nothing(site: Site, host: str) -> None:
    answer = site().get("/models.json", headers={"Host": host})
    assert answer.status_code == 421
    assert "rows" not in answer.text


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]:8765", "127.8.9.1"])
def test_loopback_has_several_names(site: Site, host: str) -> None:
    assert site().get("/sweeps", headers={"Host": host}).status_code == 200


def test_with_a_token_everybody_needs_it(site: Site) -> None:
    client = site(Access(token=TOKEN), base="http://ci.example")
    assert client.get("/").status_code == 401
    assert client.get("/static/app.css").status_code == 401
    assert client.get("/", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert client.get("/", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert client.get("/?token=wrong").status_code == 401
    entered = client.get(f"/models?token={TOKEN}", follow_redirects=False)
    assert (entered.status_code, entered.headers["location"]) == (303, "/models")
    assert "HttpOnly" in entered.headers["set-cookie"]
    assert "SameSite=strict" in entered.headers["set-cookie"]
    assert client.get("/models").status_code == 200


def test_read_only_pages_offer_nothing_and_refuse_to_write(site: Site, place: Path) -> None:
    access = Access(read_only=True)
    client = site(access)
    assert 'method="post"' not in client.get("/clusters/1").text
    fields = {"key": access.form_key, "version": "1", "who": "eve"}
    assert client.post("/clusters/1/assign", data=fields).status_code == 403
    assert assignee(place) == ""


def test_the_pages_own_connection_cannot_write(place: Path) -> None:
    engine = open_engine(str(place), read_only=True)
    with pytest.raises(EnvironmentFault, match="readonly"), engine.begin() as db:
        db.exec_driver_sql("DELETE FROM cluster")
    engine.dispose()


def test_every_answer_says_what_a_browser_may_do_with_it(site: Site) -> None:
    client = site()
    for path in ("/", "/models.json", "/nothing", "/static/app.js"):
        headers = client.get(path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
