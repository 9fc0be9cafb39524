"""Diffs against the overlay folder: applied exactly, or not at all."""

from __future__ import annotations

import difflib

import pytest

from neuronqa.fixqueue import patch
from neuronqa.fixqueue.patch import PatchRefused
from neuronqa.fixqueue.reason import Reason

BEFORE = {"a.py": "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n", "b.py": "x\n"}
CHANGE = "--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-x\n+y\n"


def diff(name: str, old: str, new: str) -> str:
    return "".join(
        difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{name}", f"b/{name}")
    )


def test_a_diff_changes_what_it_says() -> None:
    after = BEFORE["a.py"].replace("one\n", "").replace("six", "6").replace("nine", "nine\nten")
    assert patch.apply(diff("a.py", BEFORE["a.py"], after) + CHANGE, BEFORE) == {"a.py": after, "b.py": "y\n"}


def test_a_diff_may_add_a_file() -> None:
    new = "diff --git a/c.py b/c.py\nnew file mode 100644\n--- /dev/null\n+++ b/c.py\n@@ -0,0 +1,2 @@\n+x\n+y\n"
    assert patch.apply(new, BEFORE) == {"c.py": "x\ny\n"}


@pytest.mark.parametrize(
    "path",
    [
        "../b.py",
        "/etc/b.py",
        "a/../../b.py",
        "x/b.py",
        "b.txt",
        "b.py/",
        ".b.py",
        "a//b.py",
        "b\n.py",
        "conftest.py.py",
    ],
)
def test_a_path_outside_the_folder_is_refused(path: str) -> None:
    with pytest.raises(PatchRefused) as refused:
        patch.apply(CHANGE.replace("a/b.py", f"a/{path}").replace("b/b.py", f"b/{path}"), BEFORE)
    assert refused.value.reason in (Reason.PATH_OUTSIDE, Reason.PATCH_REFUSED)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello\n",
        CHANGE + CHANGE,
        CHANGE.replace("-x", "-z"),
        CHANGE.replace("@@ -1 +1 @@", "@@ -1,2 +1 @@"),
        CHANGE.replace("@@ -1 +1 @@", "@@ -7 +7 @@"),
        CHANGE.replace("--- a/b.py", "--- a/a.py"),
        CHANGE.replace("--- a/b.py", "--- /dev/null"),
        "rename from b.py\nrename to c.py\n",
        "old mode 100644\nnew mode 120000\n" + CHANGE,
        "diff --git a/b.py b/b.py\nGIT binary patch\nliteral 3\n",
        "--- a/b.py\n+++ b/b.py\n",
        "--- a/b.py\n",
        CHANGE.replace("+y", "*y"),
    ],
)
def test_what_does_not_apply_exactly_is_refused(text: str) -> None:
    with pytest.raises(PatchRefused):
        patch.apply(text, BEFORE)
