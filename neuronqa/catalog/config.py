"""The text of a config.json: any byte string in, one stored text out, and a strict reader for it.

What is stored is content addressed, so that a thousand fine-tunes of one shape are one text. A body that is a JSON
object is stored as canonical JSON without the keys that only name it (:data:`NAMES`) and without the texts of its
labels; every other body is stored as it came, bytes that are no UTF-8 as lone surrogates (`surrogateescape`), so that
nothing is lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from neuronqa.domain.identity import canonical_json, content_hash, relaxed

BODY_LIMIT: Final = 16 << 20
"""Bytes. The largest honest configs spell out image vocabularies in some megabytes."""
DEPTH_LIMIT: Final = 64
NAMES: Final = frozenset({"_name_or_path", "_commit_hash", "transformers_version", "label2id"})
"""Keys that name a config and never change what is built from it."""
ESCAPED_BYTE: Final = re.compile("[\udc80-\udcff]")
"""What `surrogateescape` makes of a byte that is no UTF-8."""


class MalformedConfig(ValueError):
    """The text is no config; `str()` is the reason, in plain words."""


def stored_text(body: bytes) -> str:
    """Return the text under which a catalog keeps `body`. Never fails."""
    text = body.decode("utf-8-sig", errors="surrogateescape")
    try:
        value = parse(text)
    except MalformedConfig:
        return text
    return canonical_json(_without_names(value))


def text_hash(text: str) -> str:
    """The name of a stored text."""
    return content_hash(text)


def parse(text: str) -> dict[str, Any]:
    """Read a stored text strictly. Raises MalformedConfig for everything that is not a JSON object within limits.

    Bare `NaN` and `Infinity` are accepted, and so are the objects transformers writes for them; both come back as
    floats. The last of two equal keys wins, as it does in transformers.
    """
    _refuse_foreign(text)
    try:
        value = json.loads(text)
    except RecursionError:
        raise MalformedConfig(f"nested deeper than {DEPTH_LIMIT} levels") from None
    except json.JSONDecodeError as error:
        raise MalformedConfig(f"not JSON: {error.msg} at line {error.lineno} column {error.colno}") from None
    except ValueError as error:
        raise MalformedConfig(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise MalformedConfig(f"a JSON {_json_word(value)}, not an object")
    if _deeper_than(value, DEPTH_LIMIT):
        raise MalformedConfig(f"nested deeper than {DEPTH_LIMIT} levels")
    return {key: relaxed(item) for key, item in value.items()}


def _refuse_foreign(text: str) -> None:
    """Name the usual things that are served in place of a config."""
    if len(text) > BODY_LIMIT:
        raise MalformedConfig(f"longer than {BODY_LIMIT} bytes")
    start = text[:200].lstrip("\ufeff \t\r\n")
    if not start:
        raise MalformedConfig("empty")
    if start.startswith("version https://git-lfs"):
        raise MalformedConfig("a Git LFS pointer, not the file")
    if start[:9].lower() == "<!doctype" or start[:5].lower() == "<html":
        raise MalformedConfig("an HTML page")
    foreign = ESCAPED_BYTE.search(text)
    if foreign:
        raise MalformedConfig(f"not UTF-8 at character {foreign.start()}")


def _without_names(value: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, item in value.items():
        if key in NAMES:
            continue
        kept[key] = _without_names(item) if isinstance(item, Mapping) else item
    labels = value.get("id2label")
    if isinstance(labels, Mapping):
        kept["id2label"] = {str(key): f"LABEL_{key}" for key in labels}
    return kept


def _deeper_than(value: Any, limit: int) -> bool:
    level: list[Any] = [value]
    for _ in range(limit):
        level = [item for outer in level for item in _children(outer)]
        if not level:
            return False
    return True


def _children(value: Any) -> Iterable[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (item for item in inner if isinstance(item, dict | list))


def _json_word(value: Any) -> str:
    words = {type(None): "null", bool: "boolean", str: "string", list: "array"}
    return words.get(type(value), "number")
