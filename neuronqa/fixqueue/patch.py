"""A unified diff against a folder of overlays, applied to texts in memory: strictly, and to nothing else.

No fuzz, no guessed offsets, no renames, modes, links or binary parts: a diff either says exactly what is there, or is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from neuronqa.fixqueue.reason import Reason

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}\.py")
_HUNK: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*")
_MORE: Final = ("rename ", "copy ", "old mode", "new mode", "deleted file mode", "Binary files", "GIT binary patch")
_HEADS: Final = ("diff --git ", "index ", "new file mode 100644")
NOTHING: Final = "/dev/null"


class PatchRefused(Exception):
    """The diff is not applied."""

    def __init__(self, reason: Reason, what: str) -> None:
        super().__init__(what)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class _Hunk:
    start: int
    """Line of the old text it begins at, from 1; 0 for a new file."""
    old: tuple[str, ...]
    new: tuple[str, ...]


def apply(diff: str, files: Mapping[str, str]) -> dict[str, str]:
    """Return the files that change, whole. Raises PatchRefused."""
    changed: dict[str, str] = {}
    for name, fresh, hunks in _files(diff):
        if name in changed or fresh == (name in files):
            raise PatchRefused(Reason.PATCH_REFUSED, f"{name}: changed twice, or not as new or old as the diff says")
        changed[name] = _changed(files.get(name, ""), hunks, name)
    if not changed:
        raise PatchRefused(Reason.PATCH_REFUSED, "the diff changes nothing")
    return changed


def plain_name(path: str) -> str:
    """The file name of a path in a diff, with or without its `a/` or `b/`. Raises PatchRefused for any other path."""
    name = path.partition("\t")[0].strip()
    name = name[2:] if name[:2] in ("a/", "b/") else name
    if str(PurePosixPath(name)) != name or not _NAME.fullmatch(name):
        raise PatchRefused(Reason.PATH_OUTSIDE, "only Python files directly in the overlay folder may be named")
    return name


def _files(diff: str) -> Iterator[tuple[str, bool, list[_Hunk]]]:
    lines = diff.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith(_MORE):
            raise PatchRefused(Reason.PATCH_REFUSED, "the diff does more than change text")
        if not line.startswith("--- "):
            if line.strip() and not line.startswith(_HEADS):
                raise PatchRefused(Reason.PATCH_REFUSED, f"line {at + 1} of the diff is none of a unified diff")
            at += 1
            continue
        if at + 1 >= len(lines) or not lines[at + 1].startswith("+++ "):
            raise PatchRefused(Reason.PATCH_REFUSED, f"line {at + 2} of the diff should name the new file")
        old, new = line[4:].strip(), lines[at + 1][4:]
        name = plain_name(new)
        if old != NOTHING and plain_name(old) != name:
            raise PatchRefused(Reason.PATCH_REFUSED, "the diff renames a file")
        at, hunks = _hunks(lines, at + 2)
        yield name, old == NOTHING, hunks


def _hunks(lines: list[str], at: int) -> tuple[int, list[_Hunk]]:
    hunks = []
    while at < len(lines) and (head := _HUNK.fullmatch(lines[at])):
        old_count, new_count = int(head[2] or 1), int(head[4] or 1)
        old: list[str] = []
        new: list[str] = []
        at += 1
        while at < len(lines) and (len(old) < old_count or len(new) < new_count):
            sign, text = lines[at][:1], lines[at][1:]
            if sign not in (" ", "+", "-"):
                raise PatchRefused(Reason.PATCH_REFUSED, f"line {at + 1} of the diff begins with none of ' ', + and -")
            old += [text] if sign != "+" else []
            new += [text] if sign != "-" else []
            at += 1
        if (len(old), len(new)) != (old_count, new_count):
            raise PatchRefused(Reason.PATCH_REFUSED, "a part of the diff is not as long as it says")
        while at < len(lines) and lines[at].startswith("\\ "):
            at += 1
        hunks.append(_Hunk(int(head[1]), tuple(old), tuple(new)))
    if not hunks:
        raise PatchRefused(Reason.PATCH_REFUSED, "a file of the diff has no changes")
    return at, hunks


def _changed(text: str, hunks: list[_Hunk], name: str) -> str:
    lines = text.splitlines()
    result: list[str] = []
    done = 0
    for hunk in hunks:
        start = max(hunk.start - 1, 0) if hunk.old else hunk.start
        if start < done or tuple(lines[start : start + len(hunk.old)]) != hunk.old:
            raise PatchRefused(Reason.PATCH_REFUSED, f"{name} is not what the diff was made from")
        result += [*lines[done:start], *hunk.new]
        done = start + len(hunk.old)
    return "\n".join([*result, *lines[done:]]) + "\n"
