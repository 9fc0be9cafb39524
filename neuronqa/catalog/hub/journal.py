"""An append-only file of checked lines, to which a process may be killed at any byte.

What was flushed is kept; a line that was cut short is dropped when the journal is opened again. A bad line with good
ones after it is no cut but damage, and is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from neuronqa.catalog import rows
from neuronqa.errors import BadInput


class Journal:
    """Open for appending. One process at a time (the pull holds a lock)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mend()
        self._file = path.open("ab")

    def append(self, value: Mapping[str, Any]) -> None:
        self._file.write(rows.sealed(value))

    def sync(self) -> None:
        """After this returns the lines survive a crash of the machine."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def flush(self) -> None:
        """After this returns the lines survive the end of the process, by whatever signal."""
        self._file.flush()

    def close(self) -> None:
        self.sync()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _mend(self) -> None:
        if not self.path.exists():
            return
        good = sum(len(line) for line, _ in _lines(self.path))
        if good < self.path.stat().st_size:
            with self.path.open("r+b") as file:
                file.truncate(good)


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Every whole line, in order. Raises BadInput for damage; an absent journal is empty."""
    if path.exists():
        for _, value in _lines(path):
            yield value


def _lines(path: Path) -> Iterator[tuple[bytes, dict[str, Any]]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                if not line.endswith(b"\n"):
                    raise rows.BadRow("it has no end")
                yield line, rows.unsealed(line)
            except rows.BadRow as error:
                if file.readline():
                    where = f"{path}, line {number}"
                    hint = "delete its folder to start the pull anew"
                    raise BadInput(f"the journal of a pull is damaged: {error}", where=where, hint=hint) from None
                return
