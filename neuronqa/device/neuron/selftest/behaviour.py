"""A behaviour anybody may expect of a PyTorch accelerator: a function that asserts it, and is named for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import Tensor

from neuronqa.device import registry
from neuronqa.device.protocol import Device
from neuronqa.domain.build import BuildOrder

DEVICE: Final = os.environ.get("NEURONQA_SELFTEST_DEVICE", "neuron")
"""The device under test, as `neuronqa.device.registry` knows it."""
N: Final = DEVICE.partition(":")[0]
"""Its type in torch. A plugin goes by the type of its device."""

BEHAVIOURS: dict[str, Callable[[], None]] = {}
"""To be run each in a process of its own that has the device, under the profile `ideal`."""

OURS: set[str] = set()
"""Those that only the simulated device promises."""

ON_THE_HOST: set[str] = set()
"""Those that can be asked of a compile backend for the CPU."""

LIBRARIES: set[str] = set()
"""Those that need accelerate or transformers, imported after the device was loaded."""


def behaviour(function: Callable[[], None]) -> Callable[[], None]:
    """Register a behaviour of PyTorch on the device."""
    BEHAVIOURS[function.__name__] = function
    return function


def our_behaviour(function: Callable[[], None]) -> Callable[[], None]:
    """Register what the simulated device promises beyond what PyTorch asks."""
    OURS.add(function.__name__)
    return behaviour(function)


def compiled_behaviour(function: Callable[[], None]) -> Callable[[], None]:
    """Register a behaviour of a compile backend, on an accelerator or the CPU."""
    ON_THE_HOST.add(function.__name__)
    return behaviour(function)


def library_behaviour(function: Callable[[], None]) -> Callable[[], None]:
    """Register a behaviour of a library on top of it."""
    LIBRARIES.add(function.__name__)
    return behaviour(function)


RANKED: dict[str, int] = {}
"""Those that need several processes, and how many. See `ranks.run`."""


def ranked_behaviour(*sizes: int) -> Callable[[Callable[[], None]], None]:
    """Register what each rank of several processes does, once for each number of them."""

    def register(function: Callable[[], None]) -> None:
        for size in sizes:
            name = f"{function.__name__}_on_{size}_ranks"
            BEHAVIOURS[name] = function
            RANKED[name] = size
            OURS.add(name)

    return register


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


_LOADED: list[Device] = []


def load(order: BuildOrder) -> Device:
    """Load the device under test into this process."""
    _LOADED.append(registry.adapter(DEVICE).load(order))
    return _LOADED[-1]


def backend() -> Any:
    """What to hand to `torch.compile(backend=...)`."""
    return _LOADED[-1].compile_backend()


def asked() -> Iterator[tuple[str, Callable[[], None]]]:
    """The behaviours that may be asked of the device under test."""
    for name, function in BEHAVIOURS.items():
        if (DEVICE == registry.SIMULATED or name not in OURS) and (N != "cpu" or name in ON_THE_HOST):
            yield name, function
