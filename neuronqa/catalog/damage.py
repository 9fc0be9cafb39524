"""Where a file differs from what was written, as far as the checksums of its blocks can tell."""

from __future__ import annotations

import zlib
from functools import cache
from pathlib import Path

from neuronqa.catalog.manifest import BLOCK, Shard


def first_bad_byte(path: Path, shard: Shard) -> str:
    """Say where the file first differs from the shard that was written; empty when it does not.

    A file cut short or lengthened is placed exactly, and so is one changed byte in a block; else the block is named.
    """
    size = 0
    with path.open("rb") as file:
        for index, wanted in enumerate(shard.blocks):
            block = file.read(BLOCK)
            start = index * BLOCK
            size = start + len(block)
            due = min(BLOCK, shard.size - start)
            if len(block) < due:
                return f"the file ends at byte {size}, it had {shard.size}"
            block = block[:due]
            if zlib.crc32(block) != wanted:
                return _within(block, wanted, start)
    extra = path.stat().st_size - shard.size
    return f"{extra} bytes too many, the first is byte {shard.size}" if extra > 0 else ""


def _within(block: bytes, wanted: int, start: int) -> str:
    place = changed_byte(block, wanted)
    if place is not None:
        return f"byte {start + place} was changed"
    return f"several bytes between {start} and {start + len(block) - 1} were changed"


def changed_byte(block: bytes, wanted: int) -> int | None:
    """Position of the one byte whose change explains the checksum, None when no single one does.

    CRC-32 is linear: the difference of two checksums is what the changed byte adds at its place, carried on through the
    zeros that follow. Walking that difference back one byte at a time meets the table entry of the change.
    """
    table, by_top, by_value = _tables()
    difference = zlib.crc32(block) ^ wanted
    for back in range(len(block)):
        if difference in by_value:
            return len(block) - 1 - back
        index = by_top[difference >> 24]
        difference = ((difference ^ table[index]) << 8) & 0xFFFFFFFF | index
    return None


@cache
def _tables() -> tuple[list[int], list[int], frozenset[int]]:
    """The table of CRC-32, its inverse by top byte, and the differences one changed byte can make."""
    table = []
    for value in range(256):
        rest = value
        for _ in range(8):
            rest = rest >> 1 ^ (0xEDB88320 if rest & 1 else 0)
        table.append(rest)
    by_top = [0] * 256
    for index, value in enumerate(table):
        by_top[value >> 24] = index
    return table, by_top, frozenset(table[1:])
