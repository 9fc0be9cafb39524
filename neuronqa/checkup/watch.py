"""Watches the files a factory is made of.

Only an edit that can change what runs counts: not a comment, not a docstring, not a file that nothing imports.
"""

from __future__ import annotations

import ast
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

PERIOD_S: Final = 0.3
SETTLED_S: Final = 0.2
"""An editor writes in several steps; files are believed once they have rested so long."""

Meanings = Mapping[Path, str]
"""Files and the hashes of what they mean to Python."""


def meanings(source: Path) -> dict[Path, str]:
    """`source` and every file beside or below it that it imports, directly or through others."""
    found: dict[Path, str] = {}
    waiting = [source]
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        try:
            text = file.read_bytes()
        except OSError:
            continue
        tree = _parsed(text)
        found[file] = hashlib.sha256(text if tree is None else ast.dump(_without_docs(tree)).encode()).hexdigest()
        if tree is not None:
            waiting += _imported(tree, file, source.parent)
    return found


def changed(before: Meanings, after: Meanings) -> list[Path]:
    """Files that are new, gone, or mean something else."""
    return sorted(file for file in before.keys() | after.keys() if before.get(file) != after.get(file))


def changes(source: Path, rest: Callable[[float], object] = time.sleep) -> Iterator[list[Path]]:
    """The files that changed since this was called, each time they have come to rest."""
    return _changes(source, meanings(source), rest)


def _changes(source: Path, known: Meanings, rest: Callable[[float], object]) -> Iterator[list[Path]]:
    while True:
        rest(PERIOD_S)
        seen = meanings(source)
        if not changed(known, seen):
            continue
        rest(SETTLED_S)
        while changed(seen, later := meanings(source)):
            seen = later
            rest(SETTLED_S)
        if different := changed(known, seen):
            yield different
        known = seen


def _parsed(text: bytes) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def _without_docs(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and isinstance(
            body, list
        ):
            first = body[0] if body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                first.value.value = ""
    return tree


def _imported(tree: ast.Module, file: Path, root: Path) -> Iterator[Path]:
    """Files below `root` that may be what an import statement names; a name may also be one of a package's modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names, base = [alias.name for alias in node.names], root
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [module, *(f"{module}.{alias.name}".strip(".") for alias in node.names)]
            base = file.parents[node.level - 1] if 0 < node.level <= len(file.parents) else root
        else:
            continue
        for name in filter(None, names):
            parts = name.split(".")
            for depth in range(1, len(parts) + 1):
                place = base.joinpath(*parts[:depth])
                yield from (one for one in (place.with_suffix(".py"), place / "__init__.py") if one.is_file())
