"""Verification names everything that is wrong, and the first bad byte."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuronqa.catalog import config, damage, rows
from neuronqa.catalog.manifest import BLOCK
from neuronqa.catalog.snapshot import SnapshotWriter
from neuronqa.catalog.verify import verify
from neuronqa.domain.catalog import Entry, Source
from neuronqa.errors import BadInput

TEXT = config.stored_text(b'{"model_type": "llama"}')
MODELS = "models-00000.jsonl.gz"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sound snapshot of a few thousand entries, so that a shard has more than one block."""
    with SnapshotWriter(tmp_path, "test", Source.FILE, made_by={}) as writer:
        name = writer.add_config(TEXT)
        for rank in range(1, 4_001):
            noise = config.text_hash(str(rank))
            writer.add(Entry(id=f"org/{noise}", rank=rank, downloads=9_000 - rank, config=name, revision=noise))
    return tmp_path


def problems(folder: Path) -> list[str]:
    return [str(problem) for problem in verify(folder)]


def change(folder: Path, file: str, position: int, value: int = 0x55) -> None:
    raw = bytearray((folder / file).read_bytes())
    raw[position] ^= value
    (folder / file).write_bytes(bytes(raw))


def test_a_sound_snapshot_has_no_problem(folder: Path) -> None:
    assert problems(folder) == []


@pytest.mark.parametrize("position", [0, 20, 1000, BLOCK - 1, BLOCK, BLOCK + 7, -1])
def test_a_changed_byte_is_named(folder: Path, position: int) -> None:
    size = (folder / MODELS).stat().st_size
    assert size > BLOCK + 7
    change(folder, MODELS, position)
    assert problems(folder)[0] == f"{MODELS}: byte {position % size} was changed"


def test_the_first_of_two_changes_is_named(folder: Path) -> None:
    change(folder, MODELS, 100)
    change(folder, MODELS, BLOCK + 100)
    assert "byte 100 was changed" in problems(folder)[0]


def test_two_changes_in_one_block_name_the_block(folder: Path) -> None:
    change(folder, MODELS, 100)
    change(folder, MODELS, 5_000)
    assert f"between 0 and {BLOCK - 1}" in problems(folder)[0]


def test_a_file_cut_short_or_lengthened_is_placed(folder: Path) -> None:
    raw = (folder / MODELS).read_bytes()
    (folder / MODELS).write_bytes(raw[:-9])
    assert f"the file ends at byte {len(raw) - 9}, it had {len(raw)}" in problems(folder)[0]
    (folder / MODELS).write_bytes(raw + b"xy")
    assert f"2 bytes too many, the first is byte {len(raw)}" in problems(folder)[0]


def test_a_missing_file_is_named(folder: Path) -> None:
    (folder / "configs.jsonl.gz").unlink()
    assert problems(folder)[0].startswith("configs.jsonl.gz: cannot be read")


def relined(folder: Path, edit: Callable[[list[bytes]], list[bytes]]) -> list[str]:
    lines = gzip.decompress((folder / MODELS).read_bytes()).splitlines(keepends=True)
    (folder / MODELS).write_bytes(gzip.compress(b"".join(edit(lines)), mtime=0))
    return problems(folder)


def line(**facts: object) -> bytes:
    return rows.sealed({"id": "org/x", "rank": 2, "downloads": 1, **facts})


def test_a_changed_line_is_named_though_the_file_is_sound_gzip(folder: Path) -> None:
    found = relined(folder, lambda lines: [lines[0], lines[1].replace(b"org/", b"orc/"), *lines[2:]])
    assert any(f"{MODELS}, line 2: its checksum" in problem for problem in found)


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (line(rank=1), "rank does not come after"),
        (line(config="0" * 32), "is not in the snapshot"),
        (line(downloads=-1), "'downloads'"),
        (line(colour="red"), "unknown member"),
    ],
)
def test_a_line_that_contradicts_is_named(folder: Path, second: bytes, said: str) -> None:
    assert any(said in problem for problem in relined(folder, lambda lines: [lines[0], second, *lines[2:]]))


def test_an_id_that_is_there_twice_is_named(folder: Path) -> None:
    first = json.loads(gzip.decompress((folder / MODELS).read_bytes()).splitlines()[0])
    found = relined(folder, lambda lines: [lines[0], line(id=first["id"]), *lines[2:]])
    assert any("twice" in problem for problem in found)


def test_counts_that_are_wrong_are_named(folder: Path) -> None:
    path = folder / "manifest.json"
    value = json.loads(path.read_text())
    path.write_text(json.dumps({**value, "counts": {**value["counts"], "library": {"timm": 4000}}}))
    assert problems(folder) == ["manifest.json: it counts entries by library otherwise than they are"]


def test_configs_that_nobody_has_are_named(tmp_path: Path) -> None:
    with SnapshotWriter(tmp_path, "test", Source.FILE, made_by={}) as writer:
        writer.add_config(TEXT)
    assert problems(tmp_path) == ["manifest.json: 1 configs belong to no entry"]


def test_without_a_manifest_there_is_nothing_to_verify(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"manifest\.json"):
        problems(tmp_path)


@given(st.binary(min_size=1, max_size=300), st.data())
def test_one_changed_byte_is_always_found(block: bytes, data: st.DataObject) -> None:
    import zlib

    place = data.draw(st.integers(0, len(block) - 1))
    changed = bytearray(block)
    changed[place] ^= data.draw(st.integers(1, 255))
    assert damage.changed_byte(bytes(changed), zlib.crc32(block)) == place
