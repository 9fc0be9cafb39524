"""A catalog written by hand: `catalog.toml` beside the files it names.

    schema_version = 1
    name = "mini"
    source = "bundled"

    [[entry]]
    id = "mini/crash-by-signal"
    factory = "faulty.py:crash"            # a workload: a function in a Python file of this folder
    arguments = { signal = "SIGSEGV" }
    deadline_s = 20
    expected = { run = "run:crash(SIGSEGV)" }

    [[entry]]
    id = "aten/add"
    op = "add"                             # a workload: an operator by its OpInfo name; also dtype, samples

    [[entry]]
    id = "flex-attention/causal-b1-s1024"
    attention = { modification = "causal", batch = 1, sequence = 1024, ... }   # the fields of AttentionSpec

    [[entry]]
    id = "moe-dispatch/top-2"
    script = "dispatch.py:dispatch"        # a workload: a function called on every rank; also arguments, requires

    [[entry]]
    id = "mini/config-truncated"
    config = '{"model_type": "llama",'     # a config.json as it is served; or config_base64, or config_nested
    expected = { listing = "listing:config_malformed" }

`config_nested` is `before`, then `open` as often as `times` says, `inner`, `close` as often, and `after`. Every other
member of an entry is a field of :class:`neuronqa.domain.catalog.Entry`. Ranks are given by position. `policy` beside
`name` is the policy a sweep of this catalog takes where none is asked for.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from neuronqa import bundled
from neuronqa.catalog import config, manifest, rows
from neuronqa.catalog.catalog import Listed
from neuronqa.catalog.status import Absence
from neuronqa.domain.catalog import Entry, Source
from neuronqa.domain.outcome import Outcome
from neuronqa.domain.workload import ModuleSpec, OpSpec, ScriptSpec, Workload, WorkloadKind
from neuronqa.errors import BadInput

FILE: Final = "catalog.toml"
SCHEMA: Final = 1
_KINDS: Final = frozenset({"factory", "op", "attention", "script"})
_WORKLOAD: Final = _KINDS | {"arguments", "seed", "deadline_s", "memory_mb", "dtype", "requires"}
_CONFIG: Final = frozenset({"config", "config_base64", "config_nested"})


def read(folder: Path) -> Listed:
    """Read `folder/catalog.toml`. Raises BadInput naming the file and the entry."""
    path = folder / FILE
    try:
        value = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"no readable {FILE}: {error.strerror}", where=str(folder)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"not TOML: {error}", where=str(path)) from error
    if value.get("schema_version") != SCHEMA:
        raise BadInput(f"schema_version must be {SCHEMA}", where=str(path))
    unknown = value.keys() - {"schema_version", "name", "source", "policy", "entry"}
    if unknown:
        raise BadInput(f"unknown key {min(unknown)!r}", where=str(path))
    try:
        name, source = manifest.shown_name(value["name"]), Source(value["source"])
        policy = str(value.get("policy", ""))
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"name and source are needed: {error}", where=str(path)) from error
    items = value.get("entry", [])
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise BadInput("entries must be tables: [[entry]]", where=str(path))
    return replace(_assemble(folder, name, source, items), policy=policy)


def _assemble(folder: Path, name: str, source: Source, items: list[dict[str, Any]]) -> Listed:
    entries: list[Entry] = []
    texts: dict[str, str] = {}
    for rank, item in enumerate(items, start=1):
        facts = {key: value for key, value in item.items() if key not in _WORKLOAD | _CONFIG}
        facts = {"rank": rank, "downloads": 0, **facts}
        try:
            workload = _workload(folder, item)
            if workload is not None:
                facts["workload"] = workload.to_json()
            elif item.keys() & _CONFIG:
                facts |= _config(_body(item), texts)
            entry = rows.entry_of(facts)
            for expected in entry.expected.values():
                Outcome.parse(expected)
        except (OSError, ValueError, TypeError, KeyError) as error:
            where = f"{folder / FILE}, entry {rank} {str(item.get('id', ''))[:60]!r}"
            raise BadInput(f"the entry cannot be used: {error}", where=where) from error
        entries.append(entry)
    if len({entry.id for entry in entries}) != len(entries):
        raise BadInput("two entries have one id", where=str(folder / FILE))
    return Listed(name=name, source=source, rows=tuple(entries), texts=texts)


def _workload(folder: Path, item: Mapping[str, Any]) -> Workload | None:
    if "factory" in item:
        return Workload(_module(folder, item))
    if "op" in item:
        return Workload(OpSpec(**{name: item[name] for name in ("op", "dtype", "seed") if name in item}))
    if "attention" in item:
        return Workload.from_json({"kind": WorkloadKind.ATTENTION, "spec": item["attention"]})
    if "script" in item:
        return Workload(_script(folder, item))
    return None


def _script(folder: Path, item: Mapping[str, Any]) -> ScriptSpec:
    path, function = _function(folder, "script", item)
    return ScriptSpec(
        source=_source(path),
        source_sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        function=function,
        arguments=dict(item.get("arguments", {})),
        requires=tuple(item.get("requires", ())),
        seed=int(item.get("seed", 0)),
    )


def _function(folder: Path, key: str, item: Mapping[str, Any]) -> tuple[Path, str]:
    """The file and the name of `FILE.py:FUNCTION`. Raises ValueError."""
    file, colon, function = str(item[key]).partition(":")
    if not colon or not function.isidentifier() or Path(file).name != file:
        raise ValueError(f"{key} must be FILE.py:FUNCTION in this folder, not {item[key]!r}")
    return folder / file, function


def _module(folder: Path, item: Mapping[str, Any]) -> ModuleSpec:
    path, factory = _function(folder, "factory", item)
    return ModuleSpec(
        source=_source(path),
        source_sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        factory=factory,
        arguments=dict(item.get("arguments", {})),
        seed=int(item.get("seed", 0)),
        deadline_s=item.get("deadline_s"),
        memory_mb=item.get("memory_mb"),
    )


def _source(path: Path) -> str:
    """Below the bundled catalogs a relative path, so that the hash is the same on every machine."""
    resolved, shipped = path.resolve(), bundled.folder("catalogs").resolve()
    return resolved.relative_to(shipped).as_posix() if resolved.is_relative_to(shipped) else str(resolved)


def _config(body: bytes, texts: dict[str, str]) -> dict[str, str]:
    """Keep a body as a pull would, and return the fact it makes."""
    if len(body) > config.BODY_LIMIT:
        return {"absence": Absence.TOO_LONG}
    text = config.stored_text(body)
    name = config.text_hash(text)
    texts[name] = text
    return {"config": name}


def _body(item: Mapping[str, Any]) -> bytes:
    if "config" in item:
        return str(item["config"]).encode()
    if "config_nested" in item:
        parts = {"before": "", "inner": "", "close": "", "after": "", **item["config_nested"]}
        middle = parts["open"] * parts["times"] + parts["inner"] + parts["close"] * parts["times"]
        return str(parts["before"] + middle + parts["after"]).encode()
    try:
        return base64.b64decode(item["config_base64"], validate=True)
    except binascii.Error as error:
        raise ValueError(f"config_base64: {error}") from None
