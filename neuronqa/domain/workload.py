"""What is executed: a kind and a typed spec, named by its content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, assert_never

from neuronqa.domain.identity import content_hash, relaxed, strict


class WorkloadKind(StrEnum):
    """Where a workload comes from."""

    HF = "hf"
    """A Hugging Face architecture: class, shrunken config, synthesised inputs, loss."""
    MODULE = "module"
    """A Python factory that returns a module, inputs and optionally a loss."""


@dataclass(frozen=True, kw_only=True)
class HfSpec:
    """A transformers class with a shrunken config.

    `config` is the complete shrunken config as strict JSON, without names, label texts and versions; `level` says how
    far it was shrunk (0 the most); `recipe` names the family recipe and its version, if one was used.
    """

    model_type: str
    class_name: str
    module: str
    """Import path of the modelling module, e.g. `transformers.models.llama.modeling_llama`."""
    config: Mapping[str, Any]
    level: int
    seed: int
    builder: str
    """Version of the rules that shrink, build and synthesise inputs."""
    recipe: str = ""

    @property
    def family(self) -> str:
        return self.model_type


@dataclass(frozen=True, kw_only=True)
class ModuleSpec:
    """A factory in a Python file: `source` is a path below the bundled catalogs or an absolute path."""

    source: str
    source_sha256: str
    factory: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    deadline_s: float | None = None
    """A tighter deadline than the policy's; used by workloads that are meant to hang."""
    memory_mb: int | None = None
    """A tighter memory limit than the policy's; used by workloads that are meant to run away."""

    @property
    def family(self) -> str:
        return self.factory


Spec = HfSpec | ModuleSpec


@dataclass(frozen=True)
class Workload:
    """A spec and its name. Equal specs have equal hashes on every machine and Python version."""

    spec: Spec

    @property
    def kind(self) -> WorkloadKind:
        match self.spec:
            case HfSpec():
                return WorkloadKind.HF
            case ModuleSpec():
                return WorkloadKind.MODULE
            case _:
                assert_never(self.spec)

    @property
    def hash(self) -> str:
        return content_hash(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Strict JSON; :meth:`from_json` reads it back."""
        return {"kind": self.kind.value, "spec": strict(asdict(self.spec))}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Workload:
        """Raises ValueError or TypeError for what :meth:`to_json` did not write."""
        spec = relaxed(value["spec"])
        match WorkloadKind(value["kind"]):
            case WorkloadKind.HF:
                return cls(HfSpec(**spec))
            case WorkloadKind.MODULE:
                return cls(ModuleSpec(**spec))
            case kind:
                assert_never(kind)
