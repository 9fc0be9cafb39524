"""How far a config is shrunk: each level names what is cut and to what."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, assert_never


class Level(IntEnum):
    """Written into the spec; 0 is the smallest."""

    SMALL = 0
    """Everything is cut: what a sweep executes."""
    AUDIT = 1
    """One level larger: own vocabulary and head_dim, two periods of the layer pattern, a longer sequence."""
    TILE = 2
    """Contraction and sequence cross a 128-wide tile."""
    WIDE = 3
    """Widths are kept; for families whose widths cannot be scaled together. Not a clean run."""
    FULL = 4
    """Nothing is cut: a model small enough to run as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What a level cuts."""

    widths: bool = True
    heads: bool = True
    head_dim: int
    """Divide head dimensions by at most this."""
    least_width: int
    """Hidden sizes are not cut below this."""
    periods: int
    """Repetitions of the layer pattern that are kept."""
    vocabulary: int
    tokens: int
    """Length of synthesised sequences."""
    positions: int
    """Longest sequence a position table is kept for."""


def reach(level: Level) -> Reach:
    """The row of the table for `level`."""
    match level:
        case Level.SMALL:
            return Reach(head_dim=4, least_width=32, periods=1, vocabulary=512, tokens=16, positions=1024)
        case Level.AUDIT:
            return Reach(head_dim=1, least_width=64, periods=2, vocabulary=OWN_VOCABULARY, tokens=48, positions=2048)
        case Level.TILE:
            return Reach(head_dim=2, least_width=192, periods=1, vocabulary=512, tokens=160, positions=1024)
        case Level.WIDE:
            return Reach(
                widths=False,
                heads=False,
                head_dim=1,
                least_width=0,
                periods=1,
                vocabulary=512,
                tokens=16,
                positions=1024,
            )
        case Level.FULL:
            return Reach(
                widths=False,
                heads=False,
                head_dim=1,
                least_width=0,
                periods=1 << 16,
                vocabulary=1 << 30,
                tokens=16,
                positions=1 << 30,
            )
        case _:
            assert_never(level)


OWN_VOCABULARY: Final = 1 << 18
"""The audit keeps a config's own vocabulary up to here."""
BATCH: Final = 2
