"""What a call of the fuzz asks about, from the plainest on."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """In this order differences are told: what is wrong for plain inputs is not blamed on strides."""

    PLAIN = "plain"
    SHAPES = "shapes"
    STRIDES = "strides"
    BROADCASTING = "broadcasting"
    EMPTY = "empty"
    TIES = "ties"
    SAME = "same"
    LARGE = "large"
    SMALL = "small"
    NOT_FINITE = "not-finite"
