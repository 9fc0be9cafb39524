"""What stands under test: the build vector that names it, and the opaque order that the device child obeys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from neuronqa.domain.identity import content_hash


@dataclass(frozen=True, kw_only=True)
class BuildVector:
    """Everything that can change a verdict, one hash per part, so that a change re-runs only what it can reach."""

    adapter: str
    """`neuron`, or the name of another device adapter."""
    profile: str
    profile_sha256: str
    shim: str
    """Hash of the device's compiled part: source, flags, compiler, torch build."""
    passes: str
    """Hash of the compiler passes."""
    kernels: Mapping[str, str] = field(default_factory=dict)
    """One hash per operator kernel that an overlay replaces."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """torch, transformers, Python, CPU instruction set."""

    @property
    def hash(self) -> str:
        return content_hash(asdict(self))


@dataclass(frozen=True, kw_only=True)
class BuildOrder:
    """What the device child loads. Nobody but the device child looks inside: a control looks like any other build.

    `fault` and `forced_cpu` ride in the same field as overlays, so neither the reference nor the judge can tell a
    planted fault from a shipped kernel.
    """

    device: str
    profile: str
    """Name of a bundled profile or path of a profile file."""
    binary: str = ""
    """Path of the built device library on this machine."""
    overlays: tuple[str, ...] = ()
    fault: Mapping[str, Any] | None = None
    forced_cpu: tuple[str, ...] = ()
    """Operators that run on the CPU because a probe found them to crash."""

    def anchored(self) -> BuildOrder:
        """The same with its files named from the root: it is obeyed in other working folders."""
        return replace(self, profile=from_root(self.profile), overlays=tuple(map(from_root, self.overlays)))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> BuildOrder:
        fields = dict(value)
        fields["overlays"] = tuple(fields.get("overlays", ()))
        fields["forced_cpu"] = tuple(fields.get("forced_cpu", ()))
        return cls(**fields)


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A device that is ready to be loaded: what to order, what it is, and how long building took."""

    order: BuildOrder
    vector: BuildVector
    seconds: float


def from_root(name: str) -> str:
    """A file's path from the root; any other name as it is."""
    return str(Path(name).absolute()) if Path(name).is_file() else name
