"""A small vocabulary, with every special token still in it and apart from the others."""

from __future__ import annotations

from typing import Any, Final

from neuronqa.workload.levels import Reach
from neuronqa.workload.meaning import Meaning, meaning
from neuronqa.workload.tree import Node, is_count

RESERVED: Final = 64
"""Rows at the end of the vocabulary for special tokens that lay beyond it."""


def cut(tree: tuple[Node, ...], reach: Reach) -> None:
    """Cut every vocabulary of the tree to the same size and move the special tokens that no longer fit.

    Equal ids stay equal everywhere, different ones different: models find their placeholders by comparing ids.
    """
    size = reach.vocabulary
    largest = max((v for node in tree for n, v in node.fields.items() if _is_vocabulary(n, v)), default=0)
    if largest <= size:
        return
    moved = _moves(tree, size)
    for node in tree:
        for name, value in node.fields.items():
            if meaning(name) is Meaning.TOKEN:
                node.fields[name] = _moved(value, moved)
            elif _is_vocabulary(name, value):
                node.fields[name] = min(value, size)


def _is_vocabulary(name: str, value: Any) -> bool:
    return meaning(name) is Meaning.VOCABULARY and is_count(value)


def _moves(tree: tuple[Node, ...], size: int) -> dict[int, int]:
    ids = {t for node in tree for n, v in node.fields.items() if meaning(n) is Meaning.TOKEN for t in _ids(v)}
    staying = {t for t in ids if t < size - RESERVED}
    free = iter(place for place in range(size - 1, -1, -1) if place not in staying)
    return dict(zip(sorted(ids - staying, reverse=True), free, strict=False))


def _ids(value: Any) -> list[int]:
    values = value if isinstance(value, list) else [value]
    return [v for v in values if is_count(v) and v >= 0]


def _moved(value: Any, moved: dict[int, int]) -> Any:
    if isinstance(value, list):
        return [_moved(each, moved) for each in value]
    return moved.get(value, value) if is_count(value) else value
