"""Folders appear whole or not at all."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from neuronqa.catalog import manifest, whole
from neuronqa.catalog.snapshot import SnapshotWriter
from neuronqa.domain.catalog import Entry, Source


def fill(folder: Path) -> None:
    with SnapshotWriter(folder, "whole", Source.FILE, made_by={}) as writer:
        writer.add(Entry(id="a", rank=1, downloads=0))


def test_a_folder_is_made_once(tmp_path: Path) -> None:
    home = whole.make(tmp_path / "deep" / "home", fill)
    assert manifest.read(home).name == "whole"

    def never(_: Path) -> None:
        pytest.fail("it was there already")

    assert whole.make(home, never) == home


def test_what_another_version_left_and_this_one_cannot_read_is_made_again(tmp_path: Path) -> None:
    home = whole.make(tmp_path / "home", fill)
    (home / manifest.FILE).write_text((home / manifest.FILE).read_text().replace('"sha256": "', '"sha256": "0'))
    (home / "of another version").touch()
    assert manifest.read(whole.make(home, fill)).name == "whole"
    assert not (home / "of another version").exists()


def test_who_comes_second_uses_what_the_first_made(tmp_path: Path) -> None:
    def overtaken(folder: Path) -> None:
        fill(folder)
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / manifest.FILE).write_text("first")

    assert (whole.make(tmp_path / "home", overtaken) / manifest.FILE).read_text() == "first"
    assert [place.name for place in tmp_path.iterdir()] == ["home"]


def test_what_fails_leaves_nothing(tmp_path: Path) -> None:
    def failing(folder: Path) -> None:
        fill(folder)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        whole.make(tmp_path / "home", failing)
    assert list(tmp_path.iterdir()) == []


def test_what_a_dead_process_left_is_swept_up_after_a_day(tmp_path: Path) -> None:
    old, new = tmp_path / ".making-old", tmp_path / ".making-new"
    for place in (old, new):
        place.mkdir()
    before = time.time() - whole.STALE_S - 60
    os.utime(old, (before, before))
    whole.make(tmp_path / "home", fill)
    assert sorted(place.name for place in tmp_path.iterdir()) == [".making-new", "home"]
