"""`neuronqa catalog`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from neuronqa.catalog import config
from neuronqa.catalog.snapshot import SnapshotWriter
from neuronqa.cli.pull_progress import clock
from neuronqa.domain.catalog import Entry, ListingStatus, Source
from tests.integration.catalog.hub_server import FakeHub, Model, llama, row, serving
from tests.unit.cli.conftest import Command

HOSTILE = "\x1b[2J\u202e[red]evil[/red]\x07"
TEXTS = ('{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64}', "<html>", "{}")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURONQA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NEURONQA_CATALOGS", raising=False)
    monkeypatch.delenv("HF_TOKEN", raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A snapshot of four entries: one eligible, one malformed, one invalid, one of a hostile library."""
    home = tmp_path / "own"
    home.mkdir()
    with SnapshotWriter(home, "own", Source.FILE, made_by={}) as writer:
        for rank, text in enumerate(TEXTS, start=1):
            name = writer.add_config(config.stored_text(text.encode()))
            writer.add(Entry(id=f"a/{rank}", rank=rank, downloads=10 - rank, library="transformers", config=name))
        writer.add(Entry(id="a/4", rank=4, downloads=0, library=HOSTILE, absence="not-asked"))
    return home


def test_known_catalogs_are_listed(neuronqa: Command) -> None:
    said = neuronqa("catalog", "list")
    assert said.code == 0
    assert "mini" in said.out
    assert "top-100k" in said.out
    listed = json.loads(neuronqa("catalog", "list", "--json").out)
    assert {"mini", "top-100k"} <= {one["name"] for one in listed["catalogs"]}


def test_every_entry_has_one_of_fifteen_statuses(neuronqa: Command, folder: Path) -> None:
    told = json.loads(neuronqa("catalog", "show", folder, "--json").out)
    assert told["registered"] == 4
    assert list(told["statuses"]) == [status.value for status in ListingStatus]
    counts = {name: count["entries"] for name, count in told["statuses"].items() if count["entries"]}
    assert counts == {"eligible": 1, "config_malformed": 1, "config_invalid": 1, "non_transformers": 1}
    assert sum(told["libraries"].values()) == sum(told["tasks"].values()) == 4


def test_what_is_shown_is_free_of_controls_and_markup(neuronqa: Command, folder: Path) -> None:
    said = neuronqa("catalog", "show", folder)
    assert said.code == 0
    assert not {"\x1b", "\x07", "\u202e"} & set(said.out)
    assert "[red]evil[/red]" in said.out


def test_a_plan_says_why_entries_are_not_run(neuronqa: Command, folder: Path) -> None:
    told = json.loads(neuronqa("catalog", "plan", folder, "--json").out)
    assert (told["configs"], told["kernel_keys"]) == (3, 1)
    assert {row["status"] for row in told["reasons"]} == {"config_malformed", "config_invalid", "non_transformers"}
    (family,) = told["families"]
    assert (family["family"], family["workloads"], family["entries"], family["downloads"]) == ("llama", 1, 1, 9)
    assert family["expected_cpu_s"] > 0
    assert "kernel keys" in neuronqa("catalog", "plan", folder).out


def test_an_audit_says_what_each_architecture_still_needs(neuronqa: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = {
        "model_types": {"total": 2, "built": 2, "ran": 1, "trained": 1},
        "pairs": {"total": 4, "ran": 3, "clean": 2, "trained": 1},
        "reasons": {"no gradient in [red]tower[/red]": ["a/B", "a/C", "d/E"]},
        "cpu_s": {"median": 0.2, "p99": 2.0},
    }
    child = f"import sys; print({json.dumps(figures)!r}); print('said', sys.argv[1:], file=sys.stderr)"
    monkeypatch.setattr("neuronqa.sweep.architectures.AUDIT", (sys.executable, "-c", child))
    assert json.loads(neuronqa("catalog", "audit", "--sample", "4@7", "--json").out) == figures
    shown = neuronqa("catalog", "audit").out
    assert "4 pairs: 3 ran (75.0%), 2 clean (50.0%), 1 trained (25.0%)" in shown
    assert "a/B, a/C, d/E" in shown


@pytest.mark.parametrize("sample", ["0@1", "7", "@", "7@", "7@x", "-1@1", "7@1; ls"])
def test_what_is_no_sample_is_bad_input(neuronqa: Command, sample: str) -> None:
    said = neuronqa("catalog", "audit", f"--sample={sample}")
    assert (said.code, said.out) == (3, "")
    assert "a sample is N@SEED" in said.err


def test_a_selection_by_status_is_a_catalog(neuronqa: Command, folder: Path) -> None:
    told = json.loads(neuronqa("catalog", "show", f"{folder}[status:eligible]", "--json").out)
    assert (told["name"], told["registered"]) == ("own[status:eligible]", 1)


def test_a_sound_snapshot_verifies(neuronqa: Command, folder: Path) -> None:
    said = neuronqa("catalog", "verify", folder)
    assert (said.code, said.out.strip()) == (0, "own is sound: 4 entries")


def test_a_damaged_one_names_the_byte_and_is_bad_input(neuronqa: Command, folder: Path) -> None:
    path = folder / "models-00000.jsonl.gz"
    raw = bytearray(path.read_bytes())
    raw[33] ^= 1
    path.write_bytes(bytes(raw))
    said = neuronqa("catalog", "verify", folder)
    assert said.code == 3
    assert "models-00000.jsonl.gz: byte 33 was changed" in said.out
    told = json.loads(neuronqa("catalog", "verify", folder, "--json").out)
    assert not told["sound"]
    assert neuronqa("catalog", "show", folder).code == 3


def test_a_selection_is_no_sounder_than_its_whole(neuronqa: Command, folder: Path) -> None:
    path = folder / "configs.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-9])
    said = neuronqa("catalog", "verify", f"{folder}[top-1]")
    assert said.code == 3
    assert "configs.jsonl.gz: the file ends at byte" in said.out


def test_a_pull_becomes_the_catalog_of_its_name(neuronqa: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(FakeHub([Model(row(number), llama(number)) for number in range(8)])) as hub:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.url)
        said = neuronqa("catalog", "pull", "--limit", 6)
        assert said.code == 0, said.err
        assert "top-100k: 6 entries in" in said.out
        assert "configs 6 / 6" in said.err
    told = json.loads(neuronqa("catalog", "show", "top-100k", "--json").out)
    assert (told["source"], told["registered"], told["notice"]) == ("hub", 6, "")


def test_a_hub_that_cannot_be_reached_is_one_line(neuronqa: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("neuronqa.catalog.hub.client.TRIES", 1)
    said = neuronqa("catalog", "pull")
    assert said.code == 4
    assert said.err.splitlines()[-1].startswith("neuronqa: the listing of models failed")


@pytest.mark.parametrize("name", ["../elsewhere", "/tmp/x", "", ".", "a/b", "x" * 101, "\x1b[2J"])
def test_a_pull_goes_nowhere_but_into_the_cache(neuronqa: Command, tmp_path: Path, name: str) -> None:
    said = neuronqa("catalog", "pull", name)
    assert said.code == 2
    assert "\x1b" not in said.err
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("verb", ["show", "plan", "verify"])
def test_an_unknown_catalog_is_bad_input(neuronqa: Command, verb: str) -> None:
    said = neuronqa("catalog", verb, "./nobody")
    assert said.code == 3
    assert said.out == ""
    assert len(said.err.splitlines()) == 1


@pytest.mark.parametrize(("seconds", "words"), [(5, "0:05"), (65, "1:05"), (3725, "1:02:05")])
def test_times_read_as_clocks(seconds: float, words: str) -> None:
    assert clock(seconds) == words
