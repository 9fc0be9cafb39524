"""A sweep's entries as rows: out to Parquet, and back in to be compared with another sweep."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection

from neuronqa.db import clusters, entry_rows, measures, queries
from neuronqa.domain.change import Line
from neuronqa.domain.outcome import Standing
from neuronqa.errors import BadInput, EnvironmentFault
from neuronqa.report import performance as dearer
from neuronqa.report.compare import Side, numbered
from neuronqa.report.performance import Performance

SCHEMA_VERSION: Final = 1
SUFFIX: Final = ".parquet"
METADATA: Final = b"neuronqa"
BATCH: Final = 20_000


def side(db: Connection, named: str) -> Side:
    """The sweep called `named`, or the Parquet file. Raises BadInput for neither, and for a sweep not triaged."""
    if named.endswith(SUFFIX):
        return read(Path(named))
    row = queries.sweep(db, named)
    if row.summary is None or clusters.triaged(db, row.id) is None:
        hint = f"`neuronqa triage update {row.name}`, once it has ended"
        raise BadInput(f"sweep {row.name} has not been triaged", hint=hint)
    keys, waived = clusters.keys_by_group(db, row.id), _waived_keys(db)
    lines: dict[int, Line] = {}
    found = dict(numbered((one.name, _line(one, keys, waived, lines)) for one in entry_rows.entries(db, row)))
    return Side(name=row.name, build=row.build_hash, registered=row.catalog.registered, entries=found)


def performance(db: Connection, before: str, after: str) -> Performance | None:
    """What became dearer between two sweeps; None where one is a file, which holds entries and no cases."""
    if before.endswith(SUFFIX) or after.endswith(SUFFIX):
        return None
    first, second = (measures.of(db, queries.sweep(db, named).id) for named in (before, after))
    return dearer.compare(first, second)


def _line(
    one: entry_rows.EntryRow, keys: dict[int, frozenset[str]], waived: frozenset[str], known: dict[int, Line]
) -> Line:
    """Entries of a group share a line but for their downloads, which are compared by nobody."""
    if one.group_id not in known:
        causes = keys.get(one.group_id, frozenset())
        known[one.group_id] = Line(
            standing=one.standing,
            rung=one.rung,
            outcome=one.outcome,
            causes=causes if one.standing is Standing.FAIL else frozenset(),
            waived=causes & waived,
            downloads=one.downloads,
        )
    return known[one.group_id]


def _waived_keys(db: Connection) -> frozenset[str]:
    ids = [one.cluster_id for one in clusters.waivers(db, time.time())]
    return frozenset(one.key for one in clusters.by_ids(db, ids).values())


def write(db: Connection, name: str | None, path: Path) -> int:
    """Write one row an entry to a Parquet file; returns how many. Raises EnvironmentFault without pyarrow."""
    pa, pq = _arrow()
    row = queries.sweep(db, name)
    keys = clusters.keys_by_group(db, row.id)
    about = {
        "schema_version": SCHEMA_VERSION,
        "sweep": row.name,
        "build": row.build_hash,
        "registered": row.catalog.registered,
        "catalog": row.catalog.name,
        "source": row.catalog.source.value,
        "policy": row.policy_sha256,
    }
    schema = _schema(pa).with_metadata({METADATA: json.dumps(about).encode()})
    count = 0
    try:
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for batch in _batches(db, row, keys):
                writer.write_table(pa.Table.from_pylist(batch, schema=schema))
                count += len(batch)
    except OSError as error:
        raise EnvironmentFault("the file cannot be written", where=str(path), hint=str(error)) from error
    return count


def read(path: Path) -> Side:
    """What :func:`write` wrote. Raises BadInput for any other file."""
    _, pq = _arrow()
    try:
        table = pq.read_table(path)
        about = json.loads(table.schema.metadata[METADATA])
        if about["schema_version"] != SCHEMA_VERSION:
            raise ValueError(f"schema version {about['schema_version']}")
        rows = table.to_pylist()
        entries = dict(numbered((one["name"], _read_line(one)) for one in rows))
        return Side(
            name=str(about["sweep"]), build=str(about["build"]), registered=int(about["registered"]), entries=entries
        )
    except (OSError, KeyError, TypeError, ValueError) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise BadInput(
            f"the file is no export of a sweep: {why}", where=str(path), hint="make one with --format parquet"
        ) from error


def _read_line(one: dict[str, Any]) -> Line:
    return Line(
        standing=Standing(one["standing"]),
        rung=one["rung"],
        outcome=one["outcome"],
        causes=frozenset(one["causes"]) if one["standing"] == Standing.FAIL.value else frozenset(),
        downloads=one["downloads"],
    )


def _batches(db: Connection, row: queries.SweepRow, keys: dict[int, frozenset[str]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for one in entry_rows.entries(db, row):
        batch.append(
            {
                "rank": one.rank,
                "name": _encodable(one.name),
                "downloads": one.downloads,
                "task": _encodable(one.task),
                "family": _encodable(one.family),
                "standing": one.standing.value,
                "evidence": one.evidence,
                "rung": one.rung,
                "outcome": _encodable(one.outcome),
                "causes": sorted(keys.get(one.group_id, ())),
            }
        )
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _encodable(text: str) -> str:
    """UTF-8 has no lone surrogates; everything else is kept as it is, for a Parquet file runs nothing."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _schema(pa: Any) -> Any:
    text, number = pa.string(), pa.int64()
    fields = [("rank", number), ("name", text), ("downloads", number), ("task", text), ("family", text)]
    fields += [("standing", text), ("evidence", text), ("rung", text), ("outcome", text)]
    return pa.schema([*fields, ("causes", pa.list_(text))])


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise EnvironmentFault("pyarrow is not installed", hint="pip install 'neuronqa[parquet]'") from error
    return pa, pq
