"""What a long command shows of itself on stderr: one live view, or a plain line every few seconds where none is."""

from __future__ import annotations

import math
import time
from types import TracebackType
from typing import Final, Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

LIVE_EVERY_S: Final = 0.25
PLAIN_EVERY_S: Final = 15.0


class Display:
    """A context manager around the whole command."""

    def __init__(self, console: Console) -> None:
        self._console = console
        # Refreshed by hand: a thread of its own would keep the process from moving into a private network.
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        self._turn = -math.inf

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    @property
    def live(self) -> bool:
        """Does somebody look at a terminal?"""
        return self._live is not None

    def due(self) -> bool:
        """Is it time to show how far it is again? Whoever is told so has taken the turn."""
        now = time.monotonic()
        due = now - self._turn >= (LIVE_EVERY_S if self.live else PLAIN_EVERY_S)
        self._turn = now if due else self._turn
        return due

    def write(self, view: RenderableType) -> None:
        """Show `view` now: in the place of the last one, or below it. Text is taken as it is, never as markup."""
        shown = Text(view) if isinstance(view, str) else view
        if self._live is not None:
            self._live.update(shown, refresh=True)
        else:
            self._console.print(shown, soft_wrap=True)
