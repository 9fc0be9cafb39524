"""Content hashes: the same value has the same name on every machine and Python version."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

NON_FINITE: Final = "__float__"
"""Key that marks a float JSON has no word for; transformers writes the same form into config.json."""

_WORDS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

ID_LENGTH: Final = 32
"""Hex digits kept of a content hash: 128 bits."""


def strict(value: Any) -> Any:
    """Return `value` as plain JSON types: enums as values, tuples as lists, non-finite floats as objects.

    Raises TypeError for anything JSON cannot hold, and for a mapping whose keys collide once they are text.
    """
    if isinstance(value, Enum):
        return strict(value.value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {NON_FINITE: _float_word(value)}
    if isinstance(value, Mapping):
        plain = {_key(key): strict(item) for key, item in value.items()}
        if len(plain) != len(value):
            raise TypeError("two keys of one mapping have the same text")
        return plain
    if isinstance(value, list | tuple):
        return [strict(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((strict(item) for item in value), key=canonical_json)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def relaxed(value: Any) -> Any:
    """Undo :func:`strict` for non-finite floats. An object that only looks like one of them stays what it is."""
    if isinstance(value, Mapping):
        if len(value) == 1 and isinstance(word := value.get(NON_FINITE), str) and word in _WORDS:
            return _WORDS[word]
        return {key: relaxed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [relaxed(item) for item in value]
    return value


def canonical_json(value: Any) -> str:
    """One text for one value: sorted keys, no spaces, ASCII only, strict JSON."""
    return json.dumps(strict(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def content_hash(value: Any) -> str:
    """128 bits of SHA-256 over the canonical JSON of `value`, as 32 hex digits."""
    return hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()[:ID_LENGTH]


def _float_word(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _key(key: Any) -> str:
    if isinstance(key, Enum):
        return str(key.value)
    if isinstance(key, str):
        return key
    if isinstance(key, int) and not isinstance(key, bool):
        return str(key)
    raise TypeError(f"{type(key).__name__} cannot be a key")
