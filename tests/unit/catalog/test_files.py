"""Catalogs of a user's own: lists of ids, folders of configs, JSONL and Parquet files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from neuronqa import catalog
from neuronqa.catalog import config, resolve, status
from neuronqa.catalog.snapshot import Snapshot, SnapshotWriter
from neuronqa.catalog.verify import verify
from neuronqa.domain.catalog import Entry, ListingStatus, Source
from neuronqa.errors import BadInput, EnvironmentFault

LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64}
TEXT = config.stored_text(json.dumps(LLAMA).encode())


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEURONQA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NEURONQA_CATALOGS", raising=False)
    return tmp_path / "cache"


def opened(path: Path) -> tuple[list[Entry], dict[str, str]]:
    found = catalog.open(str(path))
    assert found.info.source is Source.FILE
    return list(found.entries()), dict(found.configs())


def jsonl(tmp_path: Path, *rows: Any) -> Path:
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return path


def test_rows_of_ours_hold_their_configs_as_objects_or_as_text(tmp_path: Path) -> None:
    rows = ({"id": "a/b", "config": LLAMA, "downloads": 7, "task": "text-generation"}, {"id": "c/d", "config": TEXT})
    entries, texts = opened(jsonl(tmp_path, *rows))
    assert texts == {config.text_hash(TEXT): TEXT}
    common = {"model_type": "llama", "architectures": ("LlamaForCausalLM",), "config": config.text_hash(TEXT)}
    assert entries == [
        Entry(id="a/b", rank=1, downloads=7, task="text-generation", **common),  # type: ignore[arg-type]
        Entry(id="c/d", rank=2, downloads=0, **common),  # type: ignore[arg-type]
    ]


def test_a_config_that_is_text_may_be_malformed(tmp_path: Path) -> None:
    entries, texts = opened(jsonl(tmp_path, {"id": "a", "config": "<html>"}, {"id": "b", "config": [1]}))
    assert [texts[entry.config or ""] for entry in entries] == ["<html>", "[1]"]


def test_rows_of_the_hub_are_triaged_and_their_digest_is_no_config(tmp_path: Path) -> None:
    items = (
        {"id": "a/b", "library_name": "diffusers", "pipeline_tag": "text-to-image", "sha": "0" * 40, "downloads": 5},
        {"modelId": "c/d", "library_name": "transformers", "config": json.dumps(LLAMA), "tags": ["x"]},
    )
    entries, texts = opened(jsonl(tmp_path, *items))
    assert texts == {}
    assert [entry.absence for entry in entries] == ["not-asked", "not-fetched"]
    assert (entries[1].id, entries[1].model_type) == ("c/d", "llama")


def test_facts_of_a_config_are_told(tmp_path: Path) -> None:
    block = {"quantization_config": {"quant_method": "awq"}, "auto_map": {"AutoConfig": "x.Y"}}
    (entry,), _ = opened(jsonl(tmp_path, {"id": "a", "config": {**LLAMA, **block}}))
    assert (entry.custom_code, entry.quantization) == (True, "awq")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "not JSON"),
        ("[1]", "not an object"),
        ('{"downloads": 1}', "no 'id'"),
        ('{"id": "a", "colour": 1}', "unknown member 'colour'"),
        ('{"id": "a", "downloads": -1}', "'downloads'"),
        ('{"id": ["a"]}', "'id'"),
        ('{"id": "a", "workload": {"kind": "module", "spec": {}}}', "workloads"),
        ('{"sha": "x", "tags": []}', "no 'id'"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_row_that_is_wrong_names_file_and_line(tmp_path: Path, line: str, said: str) -> None:
    path = jsonl(tmp_path, {"id": "fine"}, "# a remark", line)
    with pytest.raises(BadInput) as caught:
        opened(path)
    assert said in str(caught.value)
    assert "mine.jsonl, line 3" in str(caught.value)


def test_an_id_is_there_once(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"'a/b'.*mine\.jsonl, entry 3"):
        opened(jsonl(tmp_path, {"id": "a/b"}, {"id": "c"}, {"id": "a/b", "downloads": 2}))
    folder = tmp_path / "configs"
    (folder / "a").mkdir(parents=True)
    for place in ("a.json", "a/config.json"):
        (folder / place).write_text("{}")
    with pytest.raises(BadInput, match="second entry is called 'a'"):
        opened(folder)


@pytest.mark.parametrize(("file", "name"), [("\x1b[2Jmine.jsonl", "[2Jmine"), ("\u202e.jsonl", "unnamed")])
def test_the_name_of_a_file_is_shown_clean(tmp_path: Path, file: str, name: str) -> None:
    (tmp_path / file).write_text('{"id": "a"}\n')
    assert catalog.open(str(tmp_path / file)).info.name == name


def test_a_file_that_is_no_text_is_bad_input(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_bytes(b"\xff\xfe\n")
    with pytest.raises(BadInput, match="UTF-8"):
        opened(path)


def test_a_folder_of_configs_is_a_catalog_of_its_paths(tmp_path: Path) -> None:
    for place, body in (
        ("mine/org/model/config.json", json.dumps(LLAMA).encode()),
        ("mine/flat.json", b"\xff"),
        ("mine/org/other/config.json", b" " * (config.BODY_LIMIT + 1)),
        ("mine/org/model/generation_config.json", b"{}"),
    ):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_bytes(body)
    (tmp_path / "secret.json").write_text("{}")
    (tmp_path / "mine" / "link.json").symlink_to(tmp_path / "secret.json")
    entries, texts = opened(tmp_path / "mine")
    assert [entry.id for entry in entries] == ["flat", "org/model", "org/other"]
    assert sorted(texts.values()) == sorted([TEXT, "\udcff"])
    decided = status.from_facts(entries[2])
    assert decided is not None
    assert decided[0] is ListingStatus.CONFIG_MALFORMED


def test_a_folder_without_configs_is_no_catalog(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="no catalog"):
        catalog.open(str(tmp_path / "empty"))


def pulled(name: str, stamp: str, *entries: Entry) -> Snapshot:
    folder = resolve.pulled_folder(name) / stamp
    folder.mkdir(parents=True)
    with SnapshotWriter(folder, name, Source.HUB, created=stamp, made_by={}) as writer:
        writer.add_config(TEXT)
        for entry in entries:
            writer.add(entry)
    return Snapshot.open(folder)


def test_a_list_of_ids_takes_facts_and_configs_from_what_was_pulled(tmp_path: Path) -> None:
    mine = Entry(id="a/b", rank=40, downloads=9, library="transformers", config=config.text_hash(TEXT))
    pulled("top-100k", "20260101T000000Z", mine, Entry(id="z/z", rank=41, downloads=1))
    path = tmp_path / "ids.txt"
    path.write_text("# mine\nno/such\na/b\na/b\n")
    entries, texts = opened(path)
    assert entries == [
        Entry(id="no/such", rank=1, downloads=0, absence="not-fetched"),
        Entry(id="a/b", rank=2, downloads=9, library="transformers", config=config.text_hash(TEXT)),
    ]
    assert texts == {config.text_hash(TEXT): TEXT}


def test_a_list_is_read_anew_after_a_pull(tmp_path: Path) -> None:
    path = tmp_path / "ids.txt"
    path.write_text("a/b\n")
    assert opened(path)[0][0].absence == "not-fetched"
    pulled("top-100k", "20260101T000000Z", Entry(id="a/b", rank=1, downloads=9, config=config.text_hash(TEXT)))
    assert opened(path)[0][0].config == config.text_hash(TEXT)


def test_a_changed_file_is_another_catalog_and_an_equal_one_is_not_read_again(tmp_path: Path, cache: Path) -> None:
    path = jsonl(tmp_path, {"id": "a"})
    first = catalog.open(str(path)).info
    made = sorted((cache / "catalogs" / "files").iterdir())
    assert catalog.open(str(path)).info == first
    assert sorted((cache / "catalogs" / "files").iterdir()) == made
    path.write_text('{"id": "b"}\n')
    assert catalog.open(str(path)).info.sha256 != first.sha256


def test_files_may_be_selected_from(tmp_path: Path) -> None:
    path = jsonl(tmp_path, {"id": "a", "task": "x"}, {"id": "b", "task": "y"})
    assert [entry.id for entry in catalog.open(f"{path}[task:y]").entries()] == ["b"]


def test_a_parquet_file_is_read_by_columns(tmp_path: Path) -> None:
    path = tmp_path / "mine.parquet"
    columns = {"id": ["a/b", "c/d"], "downloads": [3, None], "config": [json.dumps(LLAMA), None]}
    parquet.write_table(pa.table(columns), path)
    entries, texts = opened(path)
    assert [(entry.id, entry.downloads, entry.absence) for entry in entries] == [
        ("a/b", 3, ""),
        ("c/d", 0, "not-fetched"),
    ]
    assert list(texts.values()) == [TEXT]


def test_what_is_no_parquet_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "mine.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(BadInput, match="Parquet"):
        opened(tmp_path / "mine.parquet")


def test_without_pyarrow_a_parquet_file_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "mine.parquet").write_bytes(b"PAR1")
    with pytest.raises(EnvironmentFault, match=r"neuronqa\[parquet\]"):
        opened(tmp_path / "mine.parquet")


def test_eight_processes_read_one_file_and_one_is_killed(tmp_path: Path, cache: Path) -> None:
    """Whoever comes first or dies half way, what is left is one whole snapshot."""
    path = jsonl(tmp_path, *({"id": f"a/{number}", "config": {**LLAMA, "n": number}} for number in range(3_000)))
    script = "import sys; from neuronqa import catalog; print(catalog.open(sys.argv[1]).info.sha256)"
    root = str(Path(__file__).parents[3])
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(path)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": root, "NEURONQA_CACHE": str(cache)},
        )
        for _ in range(8)
    ]
    home = cache / "catalogs" / "files"
    while not list(home.glob(".making-*/*")) and any(reader.poll() is None for reader in readers):
        time.sleep(0.005)
    readers[3].kill()
    said = {reader.communicate()[0].decode().strip() for number, reader in enumerate(readers) if number != 3}
    assert len(said) == 1
    (folder,) = [place for place in home.iterdir() if not place.name.startswith(".")]
    assert list(verify(folder)) == []
    assert Snapshot.open(folder).info.sha256 in said
