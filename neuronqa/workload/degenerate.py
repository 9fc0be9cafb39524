"""Values that no model has, in fields that keys leave out.

A key forgets how large a vocabulary is, because that alters no kernel; but a vocabulary of none cannot be built, and a
config that cannot be built must not inherit the verdict of one that can. So such values are part of a key.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from neuronqa.workload.meaning import Meaning, meaning
from neuronqa.workload.tree import is_count


def degenerate(fields: dict[str, Any]) -> list[str]:
    """These fields of one (sub-)config, sorted; nearly always none."""
    return sorted(set(_found(fields)))


def _found(fields: dict[str, Any]) -> Iterator[str]:
    for name, value in fields.items():
        match meaning(name):
            case Meaning.VOCABULARY if is_count(value) and value < 2:
                yield f"{name}={value}"
            case Meaning.POSITIONS | Meaning.IMAGE_SIZE if is_count(value) and value < 1:
                yield f"{name}={value}"
            case _ if name in ("rope_parameters", "rope_scaling", "rope_theta") and _not_positive(value):
                yield name
    size, padding = fields.get("vocab_size"), fields.get("pad_token_id")
    if is_count(size) and is_count(padding) and padding >= size:
        yield "pad_token_id"
    if fields.get("id2label") == {}:
        yield "id2label"


def _not_positive(value: Any) -> bool:
    """Does a base of rotary positions not exceed zero, at whatever depth it is given?"""
    if isinstance(value, dict):
        return any(
            _not_positive(inner) for key, inner in value.items() if key == "rope_theta" or isinstance(inner, dict)
        )
    return isinstance(value, int | float) and not isinstance(value, bool) and value <= 0
