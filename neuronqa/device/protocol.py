"""What a device must offer to be swept. Only the device child holds one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch

from neuronqa.domain.build import BuildOrder, Prepared
from neuronqa.domain.observation import GraphUse, OpUse


class Recording(Protocol):
    """What a device noted between `start` and `stop`."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def ops(self) -> tuple[OpUse, ...]:
        """Operators used so far, summed by (op, dtype, placement, mechanism, direction)."""
        ...

    @property
    def complete(self) -> bool:
        """Was every operator seen?"""
        ...


class Device(Protocol):
    """A loaded device. Loading obeys a `BuildOrder`, overlay, fault and forced operators included."""

    @property
    def torch_device(self) -> torch.device: ...

    @property
    def not_observable(self) -> tuple[str, ...]:
        """Names of the checks whose facts this device cannot give."""
        ...

    def synchronize(self) -> None:
        """Wait for the device; an error of an earlier operator may surface here."""
        ...

    def recording(self) -> Recording: ...

    def compile_backend(self) -> str | Callable[..., Any]:
        """What to hand to `torch.compile(backend=...)`."""
        ...

    def graph_use(self) -> GraphUse:
        """What compilation did in this process so far."""
        ...

    def error_code(self, error: BaseException) -> str:
        """The `NCC_...` or `NRT ...` code an exception carries, or an empty string."""
        ...

    def memory_peak(self) -> int: ...


class Adapter(Protocol):
    """Prepares a device on this machine, and loads it into a process, once, irrevocably."""

    def prepare(self, order: BuildOrder) -> Prepared:
        """Build whatever must be built (cached) and say what stands under test.

        Raises BadInput for an unknown profile or overlay, EnvironmentFault for a machine that cannot build.
        """
        ...

    def load(self, order: BuildOrder, last_op_file: str = "") -> Device:
        """Register the device with torch and arm what `order` says.

        `last_op_file`: a small existing file the device maps and keeps the running operator's name in, so that the
        supervisor can name it after a crash; empty for none.
        """
        ...
