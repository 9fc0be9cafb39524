"""Pulling from a server that speaks the Hub's wire shapes, with the real huggingface_hub client."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from neuronqa.catalog import config, status
from neuronqa.catalog.hub import fetching, pull
from neuronqa.catalog.hub.client import HubClient
from neuronqa.catalog.hub.journal import Journal, read
from neuronqa.catalog.hub.pull import Request
from neuronqa.catalog.snapshot import Snapshot
from neuronqa.domain.catalog import Entry, ListingStatus, Source
from neuronqa.errors import BadInput, EnvironmentFault
from tests.integration.catalog.hub_server import (
    FakeHub,
    Model,
    Window,
    cut,
    cut_at_first,
    llama,
    redirecting,
    refusing,
    row,
    serving,
    zipped,
)

ROOT = Path(__file__).parents[3]
HOSTILE = "../../etc/passwd\u202e\x1b[2J\n$(reboot)"


@pytest.fixture(autouse=True)
def anonymous(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))


def models(count: int) -> list[Model]:
    return [Model(row(number), llama(number)) for number in range(count)]


def pulled(hub: FakeHub, home: Path, limit: int = 100_000, quick: bool = True) -> Snapshot:
    client = HubClient(hub.url, sleep=lambda _: None) if quick else HubClient(hub.url)
    return pull.pull(Request(name="top-100k", endpoint=hub.url, limit=limit), home, client)


def one(config_or_behaviour: Any, tmp_path: Path, **members: Any) -> Entry:
    """The entry that a single repository becomes."""
    with serving(FakeHub([Model(row(1, **members), config_or_behaviour)])) as hub:
        (entry,) = pulled(hub, tmp_path / "home").entries()
    return entry


def test_a_pull_becomes_a_snapshot_of_the_hub(tmp_path: Path) -> None:
    with serving(FakeHub(models(120), page_rows=50)) as hub:
        snapshot = pulled(hub, tmp_path)
    assert snapshot.info.source is Source.HUB
    assert snapshot.info.registered == 120
    assert snapshot.info.created.endswith("Z")
    entries = list(snapshot.entries())
    assert [entry.rank for entry in entries] == list(range(1, 121))
    assert entries[0] == Entry(
        id="org0/model-0",
        rank=1,
        downloads=1_000_000,
        revision="0" * 40,
        library="transformers",
        task="text-generation",
        model_type="llama",
        architectures=("LlamaForCausalLM",),
        parameters=1000,
        config=config.text_hash(config.stored_text(llama(0))),
    )
    assert len(dict(snapshot.configs())) == 5
    assert set(hub.requests.values()) == {1, 3}
    assert hub.requests["/api/models"] == 3
    assert not (tmp_path / pull.WORK).exists()


def test_no_more_is_listed_than_was_asked(tmp_path: Path) -> None:
    with serving(FakeHub(models(120), page_rows=50)) as hub:
        assert pulled(hub, tmp_path, limit=60).info.registered == 60
    assert hub.requests["/api/models"] == 2
    assert sum(hub.requests.values()) == 62


def test_configs_are_fetched_by_commit(tmp_path: Path) -> None:
    with serving(FakeHub(models(1))) as hub:
        pulled(hub, tmp_path)
    assert f"/org0/model-0/resolve/{'0' * 40}/config.json" in hub.requests


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ({"library_name": "diffusers"}, ListingStatus.NON_TRANSFORMERS),
        ({"library_name": "peft"}, ListingStatus.ADAPTER),
        ({"config": {"peft": {"task_type": "CAUSAL_LM"}}}, ListingStatus.ADAPTER),
        ({"gguf": {"total": 1}, "safetensors": None, "tags": ["gguf"], "config": {}}, ListingStatus.GGUF_ONLY),
        ({"gated": "manual"}, ListingStatus.GATED),
        ({"gated": "auto"}, ListingStatus.GATED),
        ({"disabled": True}, ListingStatus.DISABLED),
        ({"library_name": None, "config": None}, ListingStatus.NO_CONFIG),
        ({"library_name": "shiny-new", "config": None}, ListingStatus.NON_TRANSFORMERS),
        ({"name": HOSTILE}, ListingStatus.FETCH_ERROR),
        ({"name": "a/../b"}, ListingStatus.FETCH_ERROR),
        ({"name": "x" * 10_000}, ListingStatus.FETCH_ERROR),
    ],
)
def test_the_listing_alone_decides(members: dict[str, Any], found: ListingStatus, tmp_path: Path) -> None:
    name = members.pop("name", None)
    with serving(FakeHub([Model(row(1, name, **members), llama(1))])) as hub:
        (entry,) = pulled(hub, tmp_path).entries()
    assert sum(hub.requests.values()) == 1, "nothing is asked of the repository"
    decided = status.from_facts(entry)
    assert decided is not None
    assert decided[0] is found
    assert entry.id == (name or "org1/model-1")


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (refusing(401, X_Error_Code="GatedRepo"), ListingStatus.GATED),
        (refusing(403, X_Error_Code="GatedRepo"), ListingStatus.GATED),
        (refusing(401), ListingStatus.FETCH_ERROR),
        (refusing(401, X_Error_Code="RepoNotFound"), ListingStatus.PRIVATE_OR_REMOVED),
        (refusing(404, X_Error_Code="RepoNotFound"), ListingStatus.PRIVATE_OR_REMOVED),
        (refusing(404, X_Error_Code="EntryNotFound"), ListingStatus.NO_CONFIG),
        (refusing(404), ListingStatus.NO_CONFIG),
        (refusing(404, X_Error_Code="RevisionNotFound"), ListingStatus.FETCH_ERROR),
        (refusing(403, X_Error_Message="Access to this resource is disabled."), ListingStatus.DISABLED),
        (refusing(403), ListingStatus.FETCH_ERROR),
        (refusing(418), ListingStatus.FETCH_ERROR),
        (refusing(503), ListingStatus.FETCH_ERROR),
        (cut, ListingStatus.FETCH_ERROR),
        (b"x" * (config.BODY_LIMIT + 1), ListingStatus.CONFIG_MALFORMED),
        (zipped(b" " * (64 << 20)), ListingStatus.CONFIG_MALFORMED),
        (redirecting("https://elsewhere.example/config.json"), ListingStatus.FETCH_ERROR),
        (redirecting("http://127.0.0.1:1/config.json"), ListingStatus.FETCH_ERROR),
        (redirecting("?again=1"), ListingStatus.FETCH_ERROR),
    ],
)
def test_each_refusal_has_its_status(answer: Any, found: ListingStatus, tmp_path: Path) -> None:
    decided = status.from_facts(one(answer, tmp_path))
    assert decided is not None
    assert decided[0] is found


def test_gated_private_missing_empty_and_disabled_are_told_apart(tmp_path: Path) -> None:
    answers = [
        refusing(403, X_Error_Code="GatedRepo"),
        refusing(401),
        refusing(404, X_Error_Code="RepoNotFound"),
        refusing(404, X_Error_Code="EntryNotFound"),
        refusing(403, X_Error_Message="Access to this resource is disabled."),
    ]
    with serving(FakeHub([Model(row(number), answer) for number, answer in enumerate(answers)])) as hub:
        decided = [status.from_facts(entry) for entry in pulled(hub, tmp_path).entries()]
    assert len({one[0] for one in decided if one}) == 5


@pytest.mark.parametrize(
    "answer",
    [
        llama(1),
        zipped(llama(1)),
        cut_at_first(llama(1)),
        redirecting("?redirected=1", llama(1)),
        b"\xef\xbb\xbf" + llama(1),
    ],
)
def test_a_config_comes_through(answer: Any, tmp_path: Path) -> None:
    entry = one(answer, tmp_path)
    assert entry.config == config.text_hash(config.stored_text(llama(1)))
    assert status.from_facts(entry) is None


def test_a_malformed_config_is_kept_as_it_came(tmp_path: Path) -> None:
    with serving(FakeHub([Model(row(1), b"<!doctype html>\xff")])) as hub:
        snapshot = pulled(hub, tmp_path)
    assert [text for _, text in snapshot.configs()] == ["<!doctype html>\udcff"]


def test_items_that_are_no_models_are_counted(tmp_path: Path) -> None:
    hub = FakeHub(models(2))
    hub.models += [Model({"_id": "z", "id": value, "downloads": 0}, b"") for value in (None, 7, "")]
    with serving(hub):
        snapshot = pulled(hub, tmp_path)
    assert snapshot.info.registered == 2
    assert snapshot.manifest.made_by["unreadable"] == 3


def test_members_of_wrong_types_are_left_out_and_the_entry_stays(tmp_path: Path) -> None:
    wrong = {"library_name": 7, "pipeline_tag": ["x"], "sha": "../..", "tags": 3, "safetensors": [], "gguf": 1}
    entry = one(
        llama(1), tmp_path, **wrong, config={"model_type": {}, "architectures": "Llama"}, baseModels={"models": 1}
    )
    assert entry.id == "org1/model-1"
    assert (entry.library, entry.task, entry.revision, entry.model_type, entry.architectures) == ("", "", "", "", ())


def test_ranks_that_move_between_pages_give_no_entry_twice(tmp_path: Path) -> None:
    hub = FakeHub(models(90), page_rows=30)
    listed = iter(range(10))

    def move(path: str) -> None:
        if path.startswith("/api/") and next(listed) == 1:
            for model in hub.models[:10]:
                model.row["downloads"] = 15_000

    hub.before = move
    with serving(hub):
        snapshot = pulled(hub, tmp_path)
    ids = [entry.id for entry in snapshot.entries()]
    assert sorted(ids) == sorted(model.id for model in hub.models)
    assert snapshot.manifest.made_by["duplicates"] == 10


def test_a_storm_of_429_is_waited_out_as_told(tmp_path: Path) -> None:
    hub = FakeHub(models(3))
    hub.storms = {"/api/models": 1, f"/org1/model-1/resolve/{1:040x}/config.json": 2}
    with serving(hub):
        snapshot = pulled(hub, tmp_path, quick=False)
    assert all(entry.config for entry in snapshot.entries())


def test_six_refusals_in_a_row_are_a_fetch_error_that_the_next_pull_asks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neuronqa.catalog.hub.budget.SLACK_S", 0.01)
    hub = FakeHub(models(3), storm_s=0)
    stormy = f"/org1/model-1/resolve/{1:040x}/config.json"
    hub.storms = {stormy: 6}
    with serving(hub):
        entries = {entry.id: entry for entry in pulled(hub, tmp_path).entries()}
        decided = status.from_facts(entries["org1/model-1"])
        assert decided is not None
        assert decided[0] is ListingStatus.FETCH_ERROR
        assert hub.requests[stormy] == 6
        hub.requests.clear()
        again = pulled(hub, tmp_path)
    assert all(entry.config for entry in again.entries())
    assert dict(hub.requests) == {"/api/models": 1, stormy: 1}, "only what failed is asked again"


def test_a_refresh_asks_only_for_commits_that_changed(tmp_path: Path) -> None:
    hub = FakeHub(models(40))
    hub.models[7].config = refusing(404, X_Error_Code="EntryNotFound")
    with serving(hub):
        first = pulled(hub, tmp_path)
        hub.requests.clear()
        hub.models[5].row["sha"] = "f" * 40
        hub.models[5].config = b'{"model_type": "bert"}'
        hub.models.append(Model(row(99), llama(99)))
        second = pulled(hub, tmp_path)
    assert set(hub.requests) == {
        "/api/models",
        f"/org5/model-5/resolve/{'f' * 40}/config.json",
        f"/org1/model-99/resolve/{99:040x}/config.json",
    }
    assert first.folder != second.folder
    texts = dict(second.configs())
    by_id = {entry.id: entry for entry in second.entries()}
    assert texts[by_id["org5/model-5"].config or ""] == '{"model_type":"bert"}'
    assert by_id["org0/model-7"].absence == "entry-not-found"
    assert {entry.config for entry in second.entries() if entry.config} == set(texts)


def test_what_was_gated_is_asked_again_because_a_licence_may_be_accepted_since(tmp_path: Path) -> None:
    hub = FakeHub([Model(row(1), refusing(403, X_Error_Code="GatedRepo")), Model(row(2), llama(2))])
    with serving(hub):
        assert [entry.absence for entry in pulled(hub, tmp_path).entries()] == ["gated", ""]
        hub.models[0].config = llama(1)
        hub.requests.clear()
        assert all(entry.config for entry in pulled(hub, tmp_path).entries())
    assert dict(hub.requests) == {"/api/models": 1, f"/org1/model-1/resolve/{1:040x}/config.json": 1}


@pytest.mark.parametrize("file", ["manifest.json", "configs.jsonl.gz", "models-00000.jsonl.gz"])
def test_a_damaged_snapshot_lends_nothing_and_is_no_reason_not_to_pull(file: str, tmp_path: Path) -> None:
    with serving(FakeHub(models(20))) as hub:
        first = pulled(hub, tmp_path)
        damaged = pulled(hub, tmp_path).folder / file
        damaged.write_bytes(damaged.read_bytes()[:-7])
        hub.requests.clear()
        third = pulled(hub, tmp_path)
        assert dict(hub.requests) == {"/api/models": 1}, "the newest sound one lends the configs"
        assert third.info.sha256 == first.info.sha256 == third.manifest.made_by["refreshes"]
        for snapshot in (first, third):
            (snapshot.folder / file).write_bytes(b"")
        assert pulled(hub, tmp_path).info.sha256 == first.info.sha256
    assert sum(hub.requests.values()) == 22


def test_a_pull_that_was_killed_before_its_journals_were_removed_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(FakeHub(models(3))) as hub:
        with monkeypatch.context() as patch:
            patch.setattr(shutil, "rmtree", killed_at(tmp_path / pull.WORK))
            with pytest.raises(KeyboardInterrupt):
                pulled(hub, tmp_path)
        assert (tmp_path / pull.WORK / fetching.FILE).exists()
        (first,) = tmp_path.glob("2*")
        hub.models.append(Model(row(9), llama(9)))
        second = pulled(hub, tmp_path)
    assert second.folder != first
    assert second.info.registered == 4, "the listing is a new one, not the old one with a new date"


def killed_at(place: Path) -> Callable[..., None]:
    remove = shutil.rmtree

    def rmtree(path: Path, **options: Any) -> None:
        if path == place:
            raise KeyboardInterrupt
        remove(path, **options)

    return rmtree


def test_a_pull_says_when_it_was_begun(tmp_path: Path) -> None:
    hub = FakeHub(models(60))
    hub.before = lambda path: None if path.startswith("/api/") else cut_off()

    def cut_off() -> None:
        raise ConnectionAbortedError

    with serving(hub):
        with pytest.raises(EnvironmentFault):
            pulled(hub, tmp_path)
        begun = json.loads((tmp_path / pull.WORK / pull.REQUEST).read_bytes())["begun"]
        hub.before = lambda _: None
        assert pulled(hub, tmp_path).manifest.made_by["begun"] == begun


def test_nothing_goes_beyond_the_budget_of_the_headers(tmp_path: Path) -> None:
    hub = FakeHub(models(60), page_rows=20, windows={"api": Window(2, 2), "resolvers": Window(25, 2)})
    with serving(hub):
        snapshot = pulled(hub, tmp_path, quick=False)
    assert all(entry.config for entry in snapshot.entries())
    assert {name: window.beyond for name, window in hub.windows.items()} == {"api": 0, "resolvers": 0}
    assert sum(hub.requests.values()) == 63


def test_an_outage_stops_the_pull_and_the_next_one_goes_on(tmp_path: Path) -> None:
    hub = FakeHub(models(200))
    broken = {"since": 60}

    def outage(_: str) -> None:
        if sum(hub.requests.values()) > broken["since"]:
            raise ConnectionAbortedError

    hub.before = outage
    with serving(hub):
        with pytest.raises(EnvironmentFault, match="goes on from there"):
            pulled(hub, tmp_path)
        assert not list(tmp_path.glob("2*"))
        broken["since"] = 10**9
        before = hub.requests.copy()
        snapshot = pulled(hub, tmp_path)
    assert all(entry.config for entry in snapshot.entries())
    assert snapshot.info.registered == 200
    assert hub.requests["/api/models"] == before["/api/models"] == 1


def test_an_empty_listing_is_an_empty_catalog(tmp_path: Path) -> None:
    with serving(FakeHub([])) as hub:
        assert pulled(hub, tmp_path).info.registered == 0


@pytest.mark.parametrize("body", [b"<html>", b"{}", b"[[[[", b"[" * 100_000, b"\xff"])
def test_a_page_that_is_no_list_stops_the_pull(body: bytes, tmp_path: Path) -> None:
    hub = FakeHub(models(3))
    hub.page = body
    with serving(hub), pytest.raises(EnvironmentFault, match="page of the listing"):
        pulled(hub, tmp_path)


def test_another_pull_in_the_same_place_is_refused(tmp_path: Path) -> None:
    hub = FakeHub(models(60))
    hub.before = lambda path: None if path.startswith("/api/") else cut_off()

    def cut_off() -> None:
        raise ConnectionAbortedError

    with serving(hub):
        with pytest.raises(EnvironmentFault):
            pulled(hub, tmp_path)
        with pytest.raises(BadInput, match="same options"):
            pulled(hub, tmp_path, limit=5)


def test_damage_in_the_middle_of_a_journal_is_refused(tmp_path: Path) -> None:
    hub = FakeHub(models(60))

    def cut_off(_: str) -> None:
        if sum(hub.requests.values()) > 15:
            raise ConnectionAbortedError

    hub.before = cut_off
    with serving(hub):
        with pytest.raises(EnvironmentFault):
            pulled(hub, tmp_path)
        journal = tmp_path / pull.WORK / fetching.FILE
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join([lines[0], b"{}\n", *lines[1:]]))
        with pytest.raises(BadInput, match=r"configs\.jsonl, line 2"):
            pulled(hub, tmp_path)


def test_the_token_goes_with_every_request_and_into_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "hf_averysecrettoken"
    monkeypatch.setenv("HF_TOKEN", secret)
    seen: list[str] = []

    def behave(handler: Any) -> None:
        seen.append(handler.headers.get("Authorization", ""))
        handler.answer(200, llama(1))

    with serving(FakeHub([Model(row(1, gated="auto"), behave)])) as hub:
        snapshot = pulled(hub, tmp_path / "home")
    assert seen == [f"Bearer {secret}"]
    assert all(entry.config for entry in snapshot.entries()), "a token may open a gated repository"
    for path in (tmp_path / "home").rglob("*"):
        assert path.is_dir() or secret.encode() not in path.read_bytes()


def test_offline_mode_is_an_environment_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with serving(FakeHub(models(1))) as hub, pytest.raises(EnvironmentFault, match="HF_HUB_OFFLINE"):
        pulled(hub, tmp_path)


SCRIPT = """
import sys
from pathlib import Path
from neuronqa.catalog.hub.client import HubClient
from neuronqa.catalog.hub.pull import Request, pull
client = HubClient()
pull(Request(name="top-100k", endpoint=client.endpoint, limit=100_000), Path(sys.argv[1]), client)
"""


def child(hub: FakeHub, home: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(home)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "HF_ENDPOINT": hub.url, "HF_HUB_DISABLE_PROGRESS_BARS": "1"},
        stderr=subprocess.PIPE,
    )


def killing(hub: FakeHub, running: list[subprocess.Popen[bytes]], moments: Iterator[int]) -> Callable[[str], None]:
    """Kills the pulling process when the number of requests passes each of `moments`."""
    due = [next(moments)]

    def kill(_: str) -> None:
        with hub.lock:
            if len(hub.order) < due[0]:
                return
            due[0] = next(moments, 10**9)
        running[-1].send_signal(signal.SIGKILL)

    return kill


def pull_with_kills(hub: FakeHub, home: Path, moments: list[int]) -> tuple[Snapshot, int]:
    """Pull in child processes, each killed at the next moment, until one finishes; return how often it was killed."""
    running: list[subprocess.Popen[bytes]] = []
    hub.before = killing(hub, running, iter(moments))
    kills = 0
    with serving(hub):
        while True:
            running.append(child(hub, home))
            _, errors = running[-1].communicate()
            if running[-1].returncode == 0:
                break
            assert running[-1].returncode == -signal.SIGKILL, errors.decode()[-2000:]
            kills += 1
    (folder,) = [place for place in home.glob("2*") if place.is_dir()]
    return Snapshot.open(folder), kills


def check_whole(hub: FakeHub, snapshot: Snapshot, kills: int) -> None:
    ids = [entry.id for entry in snapshot.entries()]
    assert sorted(ids) == sorted(model.id for model in hub.models), "none lost, none twice"
    assert all(entry.config for entry in snapshot.entries())
    under_way = fetching.CONNECTIONS + 1
    assert len(hub.order) <= len(hub.models) + -(-len(hub.models) // hub.page_rows) + kills * under_way


def test_a_pull_survives_being_killed_at_pages_and_configs(tmp_path: Path) -> None:
    hub = FakeHub(models(300), page_rows=100)
    snapshot, kills = pull_with_kills(hub, tmp_path, [1, 2, 3, 60, 250])
    assert kills == 5
    check_whole(hub, snapshot, kills)


@pytest.mark.full
def test_five_thousand_models_through_storms_and_kills(tmp_path: Path) -> None:
    hub = FakeHub(models(5_000), page_rows=500, windows={"api": Window(4, 3), "resolvers": Window(900, 3)})
    hub.storms = {f"/org{n % 7}/model-{n}/resolve/{n:040x}/config.json": 1 + n % 4 for n in range(0, 5_000, 211)}
    storms = sum(hub.storms.values())
    snapshot, kills = pull_with_kills(hub, tmp_path, [*range(2, 13), 700, 2_500, 4_900])
    assert kills == 14, "after each of the ten pages, and among the configs"
    ids = [entry.id for entry in snapshot.entries()]
    assert sorted(ids) == sorted(model.id for model in hub.models)
    assert all(entry.config for entry in snapshot.entries())
    assert len(hub.order) <= 5_000 + 10 + storms + kills * (fetching.CONNECTIONS + 1)
    # A killed process cannot know what it used up of a window, so only its successor's first request may be refused.
    assert sum(window.beyond for window in hub.windows.values()) <= kills


def test_a_journal_cut_at_any_byte_is_mended(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with Journal(path) as journal:
        for number in range(3):
            journal.append({"number": number})
    whole = path.read_bytes()
    ends = [index + 1 for index, byte in enumerate(whole) if byte == ord("\n")]
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        with Journal(path) as journal:
            journal.append({"number": 9})
        kept = sum(end <= size for end in ends)
        assert [line["number"] for line in read(path)] == [*range(kept), 9]
        assert json.loads(path.read_bytes().splitlines()[-1])["number"] == 9
