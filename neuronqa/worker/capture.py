"""The first and the last of what a child printed, however much it was."""

from __future__ import annotations

from typing import Final

HEAD: Final = 4 * 1024
TAIL: Final = 12 * 1024


class HeadAndTail:
    """Keeps at most `HEAD + TAIL` bytes of a stream, and counts the rest."""

    def __init__(self) -> None:
        self._head = b""
        self._tail = b""
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = HEAD - len(self._head)
        self._head += data[:room]
        self._tail = (self._tail + data[room:])[-TAIL:]

    def text(self) -> str:
        """What was kept, as text; bytes that are not UTF-8 are replaced."""
        cut = self.total - len(self._head) - len(self._tail)
        gap = f"\n... {cut} bytes cut ...\n".encode() if cut else b""
        return (self._head + gap + self._tail).decode("utf-8", "replace")
