"""A behaviour anybody may expect of a PyTorch accelerator: a function that asserts it, and is named for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import Tensor

N: Final = "neuron"

BEHAVIOURS: dict[str, Callable[[], None]] = {}
"""To be run each in a process of its own that has the device, under the profile `ideal`."""

LIBRARIES: set[str] = set()
"""Those that need accelerate or transformers, imported after the device was loaded."""


def behaviour(function: Callable[[], None]) -> Callable[[], None]:
    """Register a behaviour of PyTorch on the device."""
    BEHAVIOURS[function.__name__] = function
    return function


def library_behaviour(function: Callable[[], None]) -> Callable[[], None]:
    """Register a behaviour of a library on top of it."""
    LIBRARIES.add(function.__name__)
    return behaviour(function)


def same(actual: Tensor, expected: Tensor, tolerance: float = 0) -> None:
    """Raises AssertionError unless both have the same dtype, shape and, within `tolerance`, values."""
    torch.testing.assert_close(
        actual.detach().cpu(), expected.detach().cpu(), rtol=tolerance, atol=tolerance, equal_nan=True
    )


@contextmanager
def refuses(*kinds: type[BaseException], words: str = "") -> Iterator[None]:
    """The block must raise one of `kinds`, with `words` in the message."""
    caught: BaseException | None = None
    try:
        yield
    except kinds as error:
        caught = error
    assert caught is not None, "nothing was raised"
    assert words in str(caught), f"{words!r} is not in: {caught}"


def api() -> Any:
    """`torch.neuron`"""
    return torch.get_device_module(N)
