"""An edit counts when it can change what runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuronqa.checkup.watch import changed, changes, meanings

MAIN = 'import layers\nfrom parts.heads import Head\n\n\ndef make():\n    """Doc."""\n    return layers.net(), Head\n'


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "__init__.py").write_text("")
    (tmp_path / "parts" / "heads.py").write_text("from .base import Base\n\nclass Head(Base):\n    pass\n")
    (tmp_path / "parts" / "base.py").write_text("class Base:\n    width = 4\n")
    (tmp_path / "layers.py").write_text("def net():\n    return 1\n")
    (tmp_path / "unused.py").write_text("x = 1\n")
    path = tmp_path / "mine.py"
    path.write_text(MAIN)
    return path


def test_everything_that_is_imported_is_watched(source: Path) -> None:
    names = {file.relative_to(source.parent).as_posix() for file in meanings(source)}
    assert names == {"mine.py", "layers.py", "parts/__init__.py", "parts/heads.py", "parts/base.py"}


@pytest.mark.parametrize(
    ("file", "text", "counts"),
    [
        ("mine.py", MAIN, False),
        ("mine.py", "# a comment\n" + MAIN, False),
        ("mine.py", MAIN.replace("Doc.", "Other words."), False),
        ("mine.py", MAIN.replace("net()", "net() "), False),
        ("mine.py", MAIN.replace("layers.net()", "layers.net"), True),
        ("mine.py", "def (", True),
        ("unused.py", "x = 2\n", False),
        ("layers.py", "def net():\n    return 2\n", True),
        ("parts/base.py", "class Base:\n    width = 8\n", True),
    ],
)
def test_an_edit_counts_when_it_can_change_what_runs(source: Path, file: str, text: str, counts: bool) -> None:
    before = meanings(source)
    path = source.parent / file
    path.write_text(text)
    assert (path in changed(before, meanings(source))) is counts


def test_changes_are_told_once_they_have_come_to_rest(source: Path) -> None:
    steps = iter([MAIN, MAIN + "a = 1\n", MAIN + "a = 1\nb = 2\n", None, None])

    def rest(_seconds: float) -> None:
        text = next(steps, None)
        if text is not None:
            source.write_text(text)

    assert next(changes(source, rest)) == [source]
    assert list(steps) == [None] or list(steps) == []


def test_an_edit_before_anybody_waits_for_one_is_told(source: Path) -> None:
    edits = changes(source, lambda _seconds: None)
    source.write_text(MAIN + "a = 1\n")
    assert next(edits) == [source]


def test_a_file_that_goes_away_is_a_change(source: Path) -> None:
    before = meanings(source)
    (source.parent / "layers.py").unlink()
    assert changed(before, meanings(source)) == [source.parent / "layers.py"]
