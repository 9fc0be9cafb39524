"""What a call of the fuzz asks about, from the plainest on, and the ways in which the CPU answers it."""

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


class Route(StrEnum):
    """A way for the CPU to a result. They round differently, and some operators make different things of NaN on each:
    PyTorch's vector loop for `hardtanh_backward` gives 0 where its scalar loop gives the gradient.
    """

    PLAIN = "cpu"
    """The call as it is."""
    DOUBLE = "exact"
    """In double precision."""
    APART = "apart"
    """With gaps between the elements: no vector loop."""
    AMONG = "among"
    """As the first of many rows: in the vector loop from the first element to the last."""
