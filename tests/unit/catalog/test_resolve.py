"""From a name or a path to a catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuronqa import catalog
from neuronqa.catalog import offline, resolve
from neuronqa.catalog.select import StatusOf
from neuronqa.catalog.snapshot import SnapshotWriter
from neuronqa.domain.catalog import Entry, ListingStatus, Source
from neuronqa.errors import BadInput, EnvironmentFault, UsageError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, no shelves, an empty working folder, and an offline edition of one entry."""
    monkeypatch.setenv("NEURONQA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NEURONQA_CATALOGS", raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def ensure(cache: Path) -> Path:
        return snapshot(cache / "offline", "top-100k", Source.SYNTHETIC)

    monkeypatch.setattr(offline, "ensure", ensure)
    return tmp_path


def snapshot(folder: Path, name: str, source: Source) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with SnapshotWriter(folder, name, source, made_by={}) as writer:
        writer.add(Entry(id="a/b", rank=1, downloads=1))
        writer.add(Entry(id="c/d", rank=2, downloads=1, model_type="bert"))
    return folder


def test_without_a_pulled_snapshot_the_name_means_the_offline_edition_and_says_so() -> None:
    found = catalog.open("top-100k")
    assert found.info.source is Source.SYNTHETIC
    assert "synthetic" in found.notice
    assert "not Hub coverage" in found.notice


def test_the_newest_whole_pulled_snapshot_goes_before_the_offline_edition() -> None:
    pulled = resolve.pulled_folder("top-100k")
    snapshot(pulled / "20260101T000000Z", "top-100k", Source.HUB)
    newest = snapshot(pulled / "20260201T000000Z", "top-100k", Source.HUB)
    (pulled / "20260301T000000Z").mkdir()
    found = catalog.open("top-100k")
    assert found.info.source is Source.HUB
    assert found.notice == ""
    assert resolve.known()["top-100k"] == str(newest)


def test_shelves_are_searched_first(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot(home / "shelf" / "mini", "mine", Source.FILE)
    monkeypatch.setenv("NEURONQA_CATALOGS", f"{home / 'shelf'}")
    assert catalog.open("mini").info.name == "mine"
    assert resolve.known()["mini"] == str(home / "shelf" / "mini")


def test_files_on_a_shelf_have_names_too(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "shelf" / "configs" / "org").mkdir(parents=True)
    (home / "shelf" / "configs" / "org" / "config.json").write_text("{}")
    (home / "shelf" / "rows.jsonl").write_text('{"id": "a"}\n{"id": "b"}\n')
    (home / "shelf" / "notes.md").write_text("no catalog")
    monkeypatch.setenv("NEURONQA_CATALOGS", f"{home / 'shelf'}")
    assert [entry.id for entry in catalog.open("configs").entries()] == ["org"]
    assert catalog.open("rows.jsonl[top-1]").info.registered == 1
    assert {"configs", "rows.jsonl"} <= resolve.known().keys()
    assert "notes.md" not in resolve.known()


def test_a_shelf_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURONQA_CATALOGS", "/no/such/shelf")
    with pytest.raises(EnvironmentFault, match="/no/such/shelf"):
        catalog.open("top-100k")


def test_a_path_is_taken_as_it_is(home: Path) -> None:
    snapshot(home / "here" / "own", "own", Source.FILE)
    assert catalog.open("./own").info.name == "own"
    assert catalog.open("own").info.name == "own"
    assert catalog.open(str(home / "here" / "own")).info.name == "own"


@pytest.mark.parametrize("name", ["nobody", "./nobody", "/no/such", "", "\x1b[2J", "../../etc/passwd", "x" * 10_000])
def test_an_unknown_name_is_bad_input_on_one_short_line(name: str) -> None:
    with pytest.raises(BadInput) as caught:
        catalog.open(name)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1_000


def test_brackets_and_select_narrow() -> None:
    assert catalog.open("top-100k[type:bert]").info.registered == 1
    assert catalog.open("top-100k", select="type:bert").info == catalog.open("top-100k[type:bert]").info
    with pytest.raises(UsageError, match="nothing"):
        catalog.open("top-100k[top-1]", select="type:bert")
    with pytest.raises(UsageError):
        catalog.open("top-100k[colour:red]")


def test_statuses_are_asked_where_they_are_known() -> None:
    asked: list[str] = []

    def statuses(whole: catalog.Catalog) -> StatusOf:
        asked.append(whole.info.name)
        return lambda entry: ListingStatus.GATED if entry.rank == 2 else ListingStatus.ELIGIBLE

    assert [e.rank for e in catalog.open("top-100k[status:gated]", statuses=statuses).entries()] == [2]
    assert catalog.open("top-100k[type:bert]", statuses=statuses).info.registered == 1
    assert asked == ["top-100k"], "a catalog is planned only where a status is asked for"
    with pytest.raises(UsageError, match="status"):
        catalog.open("top-100k[status:gated]")


def test_mini_is_bundled() -> None:
    mini = catalog.open("mini")
    assert mini.info.source is Source.BUNDLED
    assert mini.info.registered == sum(1 for _ in mini.entries())
    assert "mini" in resolve.known()
