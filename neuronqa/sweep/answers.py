"""What the planner says of configs, asked once for each config and version: answers are kept below the cache.

An answer depends on the config's text, the installed versions and the planner alone, so a second catalog, a selection
or another database plans what the first has planned without importing transformers.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, Final

from neuronqa import cachedir
from neuronqa.domain.identity import content_hash

BATCH: Final = 500
Answer = dict[str, Any]
Configs = Iterable[tuple[str, str]]
Ask = Callable[[Configs], Iterator[Answer]]


def answers(configs: Callable[[], Configs], ask: Ask, planner: Mapping[str, Any]) -> Iterator[Answer]:
    """An answer for every config: the kept ones first, then what `ask` says of the others, which is kept.

    `configs` gives the same pairs of hash and text each time it is called; `planner` names everything an answer depends
    on besides the config, down to the planner's source.
    """
    kept = Answers(planner)
    unknown: set[str] = set()
    for batch in _batches(configs()):
        known = kept.known(batch)
        unknown |= batch.keys() - known.keys()
        yield from known.values()
    fresh: list[Answer] = []
    for answer in ask((name, text) for name, text in configs() if name in unknown):
        fresh.append(answer)
        if len(fresh) == BATCH:
            kept.keep(fresh)
            fresh = []
        yield answer
    kept.keep(fresh)


class Answers:
    """A file of answers of one planner. Several processes may use it at once; a damaged one is as good as none."""

    def __init__(self, planner: Mapping[str, Any]) -> None:
        folder = cachedir.cache_dir() / "plans"
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{content_hash(planner)}.sqlite"

    def known(self, names: Iterable[str]) -> dict[str, Answer]:
        """The kept answers among those asked for."""
        wanted = list(names)
        marks = ",".join("?" * len(wanted))
        try:
            with closing(self._open()) as db:
                rows = db.execute(f"select answer from answer where hash in ({marks})", wanted).fetchall()
            return {answer["hash"]: answer for answer in (_unpacked(row[0]) for row in rows)}
        except (sqlite3.Error, zlib.error, ValueError):
            return {}

    def keep(self, answers: Iterable[Answer]) -> None:
        """Keep answers; where that fails they are asked for again another time."""
        rows = [(answer["hash"], _packed(answer)) for answer in answers]
        try:
            with closing(self._open()) as db, db:
                db.executemany("insert or ignore into answer values (?, ?)", rows)
        except sqlite3.Error:
            return

    def _open(self) -> sqlite3.Connection:
        return _opened(self._path)


def _opened(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=30)
    db.execute("pragma journal_mode = wal")
    db.execute("pragma synchronous = off")
    db.execute("create table if not exists answer (hash text primary key, answer blob not null) without rowid")
    return db


def _packed(answer: Answer) -> bytes:
    return zlib.compress(json.dumps(answer).encode("ascii"), 1)


def _unpacked(blob: bytes) -> Answer:
    answer: Answer = json.loads(zlib.decompress(blob))
    return answer


def source_sha256(package: Path) -> str:
    """One hash of every source file of a package, so that no answer outlives the rules that gave it."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _batches(configs: Configs) -> Iterator[dict[str, str]]:
    """Configs in handfuls, by hash."""
    iterator = iter(configs)
    while batch := dict(islice(iterator, BATCH)):
        yield batch
