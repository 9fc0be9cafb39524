"""A function in a Python file that is called once on every rank: found, its needs looked at, its place told."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import FileStore

from neuronqa.domain.outcome import Kind
from neuronqa.domain.workload import ScriptSpec
from neuronqa.workload.factory import load
from neuronqa.workload.runnable import BuildFailure

PORT: Final = 29_417
"""On the loopback that the ranks of one case have to themselves."""

Script = Callable[..., Mapping[str, Any]]
"""`function(place, **arguments)` returns tensors, numbers or lists of numbers by name."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a script runs and as what."""

    rank: int
    ranks: int
    device: torch.device
    dtype: torch.dtype
    store: str
    """A file that all ranks may write."""
    whole: bool = False
    """Compute by yourself, plainly and in `dtype`, what all ranks together should: the run others are measured by."""
    exactly: Callable[[], AbstractContextManager[None]] = nullcontext
    """Entered around the plain run: models that ask for a narrower float by name do not get one."""

    def announce(self) -> None:
        """Say it in the environment, as launchers do: trainers read it there."""
        numbers = {"RANK": self.rank, "LOCAL_RANK": self.rank, "WORLD_SIZE": self.ranks, "LOCAL_WORLD_SIZE": self.ranks}
        os.environ.update({name: str(value) for name, value in numbers.items()})
        os.environ.update({"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(PORT), "TORCHELASTIC_RUN_ID": "neuronqa"})

    def join(self) -> None:
        """Meet the other ranks."""
        backend = dist.get_default_backend_for_device(self.device)
        store = FileStore(f"{self.store}.{self.device.type}", self.ranks)
        dist.init_process_group(backend, store=store, rank=self.rank, world_size=self.ranks)


def script(spec: ScriptSpec) -> Script:
    """Raises BuildFailure for a package that is missing, naming how to get it, and for a file that is not the one."""
    for name in spec.requires:
        try:
            version(name)
        except PackageNotFoundError as error:
            hint = f"{name} is not installed: pip install 'neuronqa[recipes]'"
            raise BuildFailure(Kind.BUILD_MISSING_DEPENDENCY, name, hint) from error
    return load(spec.source, spec.source_sha256, spec.function)
