"""Catalogs of a user's own: a list of ids, a folder of configs, a JSONL or a Parquet file.

Each is read once, as a stream, into a snapshot below the cache that is named by what was read; so a file of a million
rows costs no more memory than one of ten.

    ids.txt        one id a line; facts and configs come from the newest pulled snapshot that has them
    FOLDER         every config.json (or *.json) below it; its path is its id
    rows.jsonl     an object a line: members of an entry, or an item as the Hub's API lists it
    rows.parquet   the same as columns (needs pyarrow)

In a row of ours `config` is the config.json itself, as an object or as text. `rank` is given by the order of the rows.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from neuronqa import cachedir
from neuronqa.catalog import config, rows, whole
from neuronqa.catalog.hub import listing
from neuronqa.catalog.snapshot import Snapshot, SnapshotWriter
from neuronqa.catalog.status import Absence
from neuronqa.domain.catalog import Entry, Source
from neuronqa.domain.outcome import clean_detail
from neuronqa.errors import BadInput, EnvironmentFault

Lookup = Callable[[], Iterable[Snapshot]]
"""Gives the pulled snapshots, newest first."""
READER: Final = "2"
"""Version of the rules below; part of the name of what they make."""
LINE_LIMIT: Final = 2 * config.BODY_LIMIT
_HUBS: Final = frozenset({"pipeline_tag", "library_name", "sha", "modelId", "_id", "safetensors", "tags", "gguf"})
"""Members that only items of the Hub have; their `config` is a digest, from which nothing can be built."""


def read(path: Path, pulled: Lookup) -> Snapshot:
    """Open a user's file or folder. Raises BadInput naming file and line, EnvironmentFault for a missing package."""
    reader = _reader(path, pulled)
    if reader is None:
        raise BadInput("not a catalog: .txt, .jsonl and .parquet files and folders of config.json are", where=str(path))
    home = cachedir.cache_dir() / "catalogs" / "files" / _identity(path, pulled)
    return Snapshot.open(whole.make(home, lambda made: _import(path, reader, made)))


def readable(path: Path) -> bool:
    """Is this a file or folder that may hold a user's catalog?"""
    try:
        return (path.is_file() and path.suffix in (".txt", ".jsonl", ".parquet")) or _holds_configs(path)
    except (OSError, ValueError):  # a name too long for any file, or with a NUL
        return False


Row = tuple[Entry, str | None]
"""An entry and the text of its config; its rank is not decided yet."""


def _reader(path: Path, pulled: Lookup) -> Callable[[], Iterator[Row]] | None:
    if path.is_dir():
        return (lambda: _folder(path)) if _holds_configs(path) else None
    match path.suffix:
        case ".txt":
            return lambda: _ids(path, pulled)
        case ".jsonl":
            return lambda: _jsonl(path)
        case ".parquet":
            return lambda: _parquet(path)
        case _:
            return None


def _import(path: Path, reader: Callable[[], Iterator[Row]], made: Path) -> None:
    name = clean_detail(path.resolve().stem) or "unnamed"
    seen: set[bytes] = set()
    with SnapshotWriter(made, name, Source.FILE, made_by={"file": path.name}) as writer:
        for rank, (entry, text) in enumerate(reader(), start=1):
            if (key := entry.id.encode("utf-8", "surrogatepass")) in seen:
                raise BadInput(f"a second entry is called {entry.id[:80]!r}", where=f"{path}, entry {rank}")
            seen.add(key)
            config_name = None if text is None else writer.add_config(text)
            writer.add(replace(entry, rank=rank, config=config_name))


def _folder(path: Path) -> Iterator[Row]:
    for file in _configs_below(path):
        relative = file.relative_to(path)
        name = relative.parent if file.name == "config.json" and relative.parent.name else relative.with_suffix("")
        try:
            body = file.read_bytes()
        except OSError as error:
            raise BadInput(f"cannot read: {error.strerror}", where=str(file)) from error
        if len(body) > config.BODY_LIMIT:
            yield Entry(id=name.as_posix(), rank=0, downloads=0, absence=Absence.TOO_LONG), None
        else:
            yield _row(path, 0, {"id": name.as_posix()}, config.stored_text(body))


def _ids(path: Path, pulled: Lookup) -> Iterator[Row]:
    wanted = list(dict.fromkeys(line for _, line in _lines(path)))
    found: dict[str, Entry] = {}
    texts: dict[str, str] = {}
    missing = set(wanted)
    for snapshot in pulled():
        mine = {entry.id: entry for entry in snapshot.entries() if entry.id in missing}
        needed = {entry.config for entry in mine.values()}
        texts |= {name: text for name, text in snapshot.configs() if name in needed}
        found |= mine
        missing -= mine.keys()
    for name in wanted:
        entry = found.get(name) or Entry(id=name, rank=0, downloads=0, absence=Absence.NOT_FETCHED)
        yield entry, texts.get(entry.config or "")


def _jsonl(path: Path) -> Iterator[Row]:
    for number, line in _lines(path):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadInput(f"not JSON: {error}", where=f"{path}, line {number}") from None
        yield _entry(path, number, value)


def _parquet(path: Path) -> Iterator[Row]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        hint = "pip install 'neuronqa[parquet]'"
        raise EnvironmentFault("reading Parquet needs pyarrow, which is not installed", hint=hint) from error
    try:
        number = 0
        for batch in parquet.ParquetFile(path).iter_batches(batch_size=1_000):
            for value in batch.to_pylist():
                number += 1
                yield _entry(path, number, {key: item for key, item in value.items() if item is not None})
    except (ArrowException, OSError) as error:
        raise BadInput(f"not a Parquet file that can be read: {error}"[:300], where=str(path)) from error


def _entry(path: Path, number: int, value: Any) -> Row:
    """A row of ours or of the Hub's. Raises BadInput naming the line."""
    try:
        if not isinstance(value, Mapping):
            raise rows.BadRow("not an object")
        members = dict(value)
        text = None
        if members.keys() & _HUBS:
            members = _from_hub(value)
        else:
            text = _text(members.pop("config", None))
    except (rows.BadRow, TypeError) as error:
        raise BadInput(f"not an entry: {error}", where=f"{path}, line {number}") from None
    return _row(path, number, members, text)


def _row(path: Path, number: int, members: Mapping[str, Any], text: str | None) -> Row:
    """An entry of the members given and of those its config tells. Raises BadInput naming the line."""
    told = {"absence": Absence.NOT_FETCHED} if text is None else _told(text)
    try:
        if "workload" in members:
            raise rows.BadRow("only a catalog.toml may define workloads")
        return rows.entry_of({"downloads": 0, **told, **members, "rank": 0}), text
    except rows.BadRow as error:
        raise BadInput(f"not an entry: {error}", where=f"{path}, line {number}") from None


def _from_hub(item: Mapping[str, Any]) -> dict[str, Any]:
    parsed = {key: _parsed(value) for key, value in item.items()}
    found = listing.facts({"id": parsed.get("modelId"), **parsed}, authenticated=True)
    if found is None:
        raise rows.BadRow("no 'id'")
    return {key: value for key, value in found.items() if key != "absence" or value}


def _parsed(value: Any) -> Any:
    """Dumps keep nested members as JSON text."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _told(text: str) -> dict[str, Any]:
    """The facts a listing would tell of a config."""
    try:
        value = config.parse(text)
    except config.MalformedConfig:
        return {}
    names = value.get("architectures")
    block = value.get("quantization_config")
    facts = {
        "model_type": value.get("model_type"),
        "architectures": names if isinstance(names, list) and all(isinstance(name, str) for name in names) else [],
        "custom_code": isinstance(value.get("auto_map"), dict),
        "quantization": str(block.get("quant_method", "unnamed")) if isinstance(block, dict) else "",
    }
    return {key: item for key, item in facts.items() if item and (key != "model_type" or isinstance(item, str))}


def _text(value: Any) -> str | None:
    """The stored text of a config given as an object or as text."""
    if value is None:
        return None
    body = value if isinstance(value, str) else json.dumps(value)
    return config.stored_text(body.encode("utf-8", "surrogatepass"))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines that say something, with their numbers."""
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(LINE_LIMIT + 1):
                number += 1
                if len(line) > LINE_LIMIT:
                    raise BadInput(f"longer than {LINE_LIMIT} bytes", where=f"{path}, line {number}")
                text = line.decode("utf-8").strip()
                if text and not text.startswith("#"):
                    yield number, text
    except UnicodeDecodeError as error:
        raise BadInput(f"not UTF-8: {error.reason}", where=str(path)) from error
    except OSError as error:
        raise BadInput(f"cannot read: {error.strerror}", where=str(path)) from error


def _configs_below(path: Path) -> Iterator[Path]:
    """Config files in a fixed order; links are not followed, so that a folder cannot lead out of itself."""
    for folder, folders, files in os.walk(path, followlinks=False):
        folders.sort()
        names = ["config.json"] if "config.json" in files else sorted(name for name in files if name.endswith(".json"))
        for name in names:
            file = Path(folder) / name
            if file.is_file() and not file.is_symlink():
                yield file


def _holds_configs(path: Path) -> bool:
    return path.is_dir() and next(_configs_below(path), None) is not None


def _identity(path: Path, pulled: Lookup) -> str:
    """What was read decides the name: the bytes of the files, and for a list of ids the snapshots that are asked."""
    digest = hashlib.sha256(f"{READER} {path.suffix}".encode())
    for file in _configs_below(path) if path.is_dir() else (path,):
        name = file.relative_to(path) if path.is_dir() else Path(file.name)
        digest.update(f"\n{name.as_posix()}\n".encode("utf-8", "surrogateescape"))
        try:
            with file.open("rb") as opened:
                digest.update(hashlib.file_digest(opened, "sha256").digest())
        except OSError as error:
            raise BadInput(f"cannot read: {error.strerror}", where=str(file)) from error
    if path.suffix == ".txt":
        for snapshot in pulled():
            digest.update(snapshot.info.sha256.encode())
    return digest.hexdigest()[:32]
