"""One entry, one line: JSON that checks itself.

A line is a JSON object whose last member, `crc`, is the CRC-32 of everything before it. So a damaged line is known by
itself, wherever in a shard it lies.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, Final

from neuronqa.domain.catalog import Entry

TEXT_LIMIT: Final = 16_384
"""Characters in any one text of a row; the Hub's own ids end at 96."""
_TAIL: Final = len(',"crc":"00000000"}')


class BadRow(ValueError):
    """A line that is not a row; `str()` says why, and `offset` where in the line, in bytes, if that is known."""

    def __init__(self, reason: str, offset: int = 0) -> None:
        super().__init__(reason)
        self.offset = offset


def sealed(body: Mapping[str, Any]) -> bytes:
    """One line (with its newline) of a non-empty JSON object, ending in its own checksum."""
    text = json.dumps(body, separators=(",", ":"), allow_nan=False).encode("ascii")[:-1]
    return b'%s,"crc":"%08x"}\n' % (text, zlib.crc32(text))


def unsealed(line: bytes) -> dict[str, Any]:
    """Read what :func:`sealed` wrote. Raises BadRow."""
    text = line.rstrip(b"\r\n")
    body, tail = text[:-_TAIL], text[-_TAIL:]
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadRow(f"not JSON: {error.msg}", error.pos) from None
    except UnicodeDecodeError as error:
        raise BadRow("not ASCII", error.start) from None
    except (ValueError, RecursionError) as error:
        raise BadRow(f"not JSON: {error}") from None
    if tail != b',"crc":"%08x"}' % zlib.crc32(body):
        raise BadRow("its checksum does not match")
    if not isinstance(value, dict):
        raise BadRow("not a JSON object")
    value.pop("crc", None)
    return value


def entry_line(entry: Entry) -> bytes:
    """The line of an entry; what has its default is left out."""
    body: dict[str, Any] = {}
    for name, default in _FIELDS.items():
        value = getattr(entry, name)
        if value != default:
            body[name] = list(value) if isinstance(value, tuple) else value
    return sealed(body)


def parse_entry(line: bytes) -> Entry:
    """Read what :func:`entry_line` wrote. Raises BadRow for anything else, unknown members included."""
    return entry_of(unsealed(line))


def entry_of(value: Mapping[str, Any]) -> Entry:
    """Check types and limits and make the entry. Raises BadRow naming the member."""
    for name, item in value.items():
        check = _CHECKS.get(name)
        if check is None:
            raise BadRow(f"unknown member {name[:40]!r}")
        if not check(item):
            raise BadRow(f"{name!r} has a value it cannot have")
    missing = _REQUIRED - value.keys()
    if missing:
        raise BadRow(f"no {min(missing)!r}")
    known = dict(value)
    if "architectures" in known:
        known["architectures"] = tuple(known["architectures"])
    return Entry(**known)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= TEXT_LIMIT


def _is_name(value: object) -> bool:
    return _is_text(value) and value != ""


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and len(value) == 32 and not set(value) - set("0123456789abcdef")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_names(value: object) -> bool:
    return isinstance(value, list) and len(value) <= 64 and all(_is_text(item) for item in value)


def _is_workload(value: object) -> bool:
    return isinstance(value, dict) and value.keys() == {"kind", "spec"} and isinstance(value["spec"], dict)


def _is_expected(value: object) -> bool:
    return isinstance(value, dict) and all(_is_text(key) and _is_text(item) for key, item in value.items())


_CHECKS: Final = {
    "id": _is_name,
    "rank": _is_count,
    "downloads": _is_count,
    "revision": _is_text,
    "library": _is_text,
    "task": _is_text,
    "model_type": _is_text,
    "architectures": _is_names,
    "custom_code": _is_flag,
    "quantization": _is_text,
    "parameters": _is_count,
    "base_model": _is_text,
    "config": _is_hash,
    "absence": _is_text,
    "workload": _is_workload,
    "expected": _is_expected,
}
_REQUIRED: Final = frozenset({"id", "rank", "downloads"})
_FIELDS: Final = {
    field.name: (
        field.default_factory()
        if field.default_factory is not MISSING
        else None
        if field.name in _REQUIRED
        else field.default
    )
    for field in fields(Entry)
}
