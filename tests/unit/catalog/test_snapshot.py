"""A snapshot comes back as it was written, and a damaged one stops at the damage."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from neuronqa.catalog import config, manifest
from neuronqa.catalog.catalog import Listed
from neuronqa.catalog.snapshot import SHARD_ROWS, Snapshot, SnapshotWriter, config_line
from neuronqa.domain.catalog import Entry, Source
from neuronqa.errors import BadInput, ExitCode

TEXT = config.stored_text(b'{"model_type": "llama"}')
HOSTILE = "../../etc/\x00passwd\u202e\n$(reboot)\ud800" + "x" * 10_000


def entry(rank: int, **facts: object) -> Entry:
    return Entry(id=f"org/model-{rank}", rank=rank, downloads=max(0, 100 - rank), **facts)  # type: ignore[arg-type]


def write(folder: Path, entries: Sequence[Entry], texts: Sequence[str] = (TEXT,)) -> Snapshot:
    folder.mkdir(parents=True, exist_ok=True)
    with SnapshotWriter(folder, "test", Source.FILE, made_by={"by": "test"}) as writer:
        for text in texts:
            writer.add_config(text)
        for one in entries:
            writer.add(one)
    return Snapshot.open(folder)


def test_entries_and_configs_come_back_as_they_were_written(tmp_path: Path) -> None:
    full = entry(
        2,
        revision="a" * 40,
        library="transformers",
        task="text-generation",
        model_type="llama",
        architectures=("LlamaForCausalLM",),
        custom_code=True,
        quantization="awq",
        parameters=7_000_000_000,
        base_model="org/base",
        config=config.text_hash(TEXT),
        absence="gated",
        workload={"kind": "module", "spec": {"source": "x"}},
        expected={"run": "run:crash(SIGSEGV)"},
    )
    snapshot = write(tmp_path, [entry(1), full])
    assert list(snapshot.entries()) == [entry(1), full]
    assert list(snapshot.configs()) == [(config.text_hash(TEXT), TEXT)]
    assert snapshot.info.registered == 2
    assert snapshot.info.source is Source.FILE


def test_hostile_ids_survive_as_data(tmp_path: Path) -> None:
    snapshot = write(tmp_path, [Entry(id=HOSTILE, rank=1, downloads=0)])
    assert next(snapshot.entries()).id == HOSTILE
    for path in tmp_path.iterdir():
        assert path.name in ("manifest.json", "configs.jsonl.gz", "models-00000.jsonl.gz")


def test_text_that_is_no_utf8_survives(tmp_path: Path) -> None:
    text = config.stored_text(b'{"author": "Jos\xe9"}')
    assert [text for _, text in write(tmp_path, [], [text]).configs()] == [text]


def test_equal_facts_make_equal_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name, [entry(1), entry(2)])
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_a_long_catalog_is_sharded(tmp_path: Path) -> None:
    snapshot = write(tmp_path, [entry(rank) for rank in range(1, SHARD_ROWS + 2)])
    assert [shard.rows for shard in snapshot.manifest.models] == [SHARD_ROWS, 1]
    assert sum(1 for _ in snapshot.entries()) == SHARD_ROWS + 1


def test_a_catalog_in_memory_has_the_hash_of_its_snapshot(tmp_path: Path) -> None:
    rows = (entry(1, config=config.text_hash(TEXT)), entry(2))
    held = Listed(name="test", source=Source.FILE, rows=rows, texts={config.text_hash(TEXT): TEXT})
    assert held.info == write(tmp_path, rows).info


def test_every_fact_is_in_the_hash(tmp_path: Path) -> None:
    one = write(tmp_path / "a", [entry(1)])
    assert one.info.sha256 != write(tmp_path / "b", [entry(1, task="fill-mask")]).info.sha256
    assert one.info.sha256 != write(tmp_path / "c", [entry(1)], [TEXT, "other"]).info.sha256


def rewrite(path: Path, lines: list[bytes]) -> None:
    path.write_bytes(gzip.compress(b"".join(lines), mtime=0))


def lines_of(path: Path) -> list[bytes]:
    return gzip.decompress(path.read_bytes()).splitlines(keepends=True)


def damage_text(path: Path) -> None:
    lines = lines_of(path)
    rewrite(path, [lines[0], lines[1].replace(b"model-2", b"model-9"), *lines[2:]])


def damage_bytes(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    path.write_bytes(bytes(raw))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-12])


def lose_a_line(path: Path) -> None:
    rewrite(path, lines_of(path)[:-1])


def swap_lines(path: Path) -> None:
    rewrite(path, lines_of(path)[::-1])


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("harm", [damage_text, damage_bytes, cut, lose_a_line, swap_lines, empty])
def test_a_damaged_shard_names_file_and_line(tmp_path: Path, harm: object) -> None:
    snapshot = write(tmp_path, [entry(rank) for rank in range(1, 6)])
    harm(tmp_path / "models-00000.jsonl.gz")  # type: ignore[operator]
    with pytest.raises(BadInput, match=r"models-00000\.jsonl\.gz, line \d") as caught:
        list(snapshot.entries())
    assert caught.value.exit_code is ExitCode.BAD_INPUT


def test_a_changed_line_is_named_exactly(tmp_path: Path) -> None:
    snapshot = write(tmp_path, [entry(rank) for rank in range(1, 6)])
    damage_text(tmp_path / "models-00000.jsonl.gz")
    with pytest.raises(BadInput, match="line 2"):
        list(snapshot.entries())


def test_a_config_under_a_wrong_hash_is_refused(tmp_path: Path) -> None:
    snapshot = write(tmp_path, [])
    path = tmp_path / "configs.jsonl.gz"
    rewrite(path, [config_line("0" * 32, TEXT)])
    with pytest.raises(BadInput, match=r"configs\.jsonl\.gz, line 1"):
        list(snapshot.configs())


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    snapshot = write(tmp_path, [entry(1)])
    (tmp_path / "models-00000.jsonl.gz").unlink()
    with pytest.raises(BadInput, match="models-00000"):
        list(snapshot.entries())


def edit(folder: Path, **changes: object) -> None:
    path = folder / manifest.FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    "changes",
    [
        {"schema_version": 2},
        {"registered": 3},
        {"sha256": "0" * 64},
        {"source": "heaven"},
        {"models": [{"file": "../models", "rows": 1, "sha256": "0" * 64, "size": 1, "blocks": [1]}]},
        {"models": [{"file": "models", "rows": -1, "sha256": "0" * 64, "size": 1, "blocks": [1]}]},
        {"models": None},
        {"name": 7},
        {"name": ""},
        {"name": "\x1b[2J"},
        {"name": "top\u202e"},
        {"name": "x" * 1_000},
    ],
)
def test_a_manifest_that_cannot_be_used_is_refused(tmp_path: Path, changes: dict[str, object]) -> None:
    write(tmp_path, [entry(1)])
    edit(tmp_path, **changes)
    with pytest.raises(BadInput, match=r"manifest\.json"):
        Snapshot.open(tmp_path)


def test_a_folder_without_manifest_is_no_snapshot(tmp_path: Path) -> None:
    writer = SnapshotWriter(tmp_path, "test", Source.FILE, made_by={})
    writer.add(entry(1))
    with pytest.raises(BadInput, match="manifest"):
        Snapshot.open(tmp_path)


def test_a_snapshot_of_the_hub_defines_no_workload(tmp_path: Path) -> None:
    with SnapshotWriter(tmp_path, "hub", Source.HUB, made_by={}) as writer:
        writer.add(entry(1, workload={"kind": "module", "spec": {"source": "/tmp/evil.py"}}))
    with pytest.raises(BadInput, match="defines a workload"):
        list(Snapshot.open(tmp_path).entries())
