"""What is executed: a kind and a typed spec, named by its content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final, assert_never

from neuronqa.domain.identity import content_hash, relaxed, strict


class WorkloadKind(StrEnum):
    """Where a workload comes from."""

    HF = "hf"
    """A Hugging Face architecture: class, shrunken config, synthesised inputs, loss."""
    MODULE = "module"
    """A Python factory that returns a module, inputs and optionally a loss."""
    OP = "op"
    """One operator with the sample inputs of PyTorch's own operator tests (OpInfo)."""
    ATTENTION = "attention"
    """FlexAttention with one modification of scores or mask, at one size."""
    SCRIPT = "script"
    """A Python function that trains by itself, on one rank or several, and returns what it saw."""


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


OP_TESTS: Final = "torch.testing._internal.common_methods_invocations"
"""Holds PyTorch's operator tests; slow to import."""


@dataclass(frozen=True, kw_only=True)
class OpSpec:
    """An operator by its OpInfo name: `add`, or `std.unbiased` for a variant of one."""

    op: str
    dtype: str = "float32"
    """Of the samples. Floating-point ones are cast to the case's dtype; `int64` and `bool` stay."""
    samples: int = 8
    """The first so many that run on the CPU."""
    seed: int = 0

    @property
    def family(self) -> str:
        return "op"


class Modification(StrEnum):
    """What an attention does to its scores or hides by its mask."""

    CAUSAL = "causal"
    SLIDING_WINDOW = "sliding-window"
    ALIBI = "alibi"
    SOFT_CAP = "soft-cap"
    DOCUMENT = "document"
    PREFIX = "prefix"
    GQA = "gqa"
    """Causal, with several query heads to a key head."""
    CAPTURED = "captured"
    """A learnt bias by relative position, captured and differentiated."""


@dataclass(frozen=True, kw_only=True)
class AttentionSpec:
    """An attention at the size that is asked about, and at the size at which its numbers are computed.

    The whole size is compiled without any tensor being allocated; where the compiler refuses it, or would take longer
    than `compile_budget_s`, nothing else is run.
    """

    modification: Modification
    batch: int
    sequence: int
    heads: int
    kv_heads: int
    head_dim: int
    executed_batch: int
    executed_sequence: int
    compile_budget_s: float
    seed: int = 0

    @property
    def family(self) -> str:
        return "attention"


@dataclass(frozen=True, kw_only=True)
class ScriptSpec:
    """A function in a Python file: called once on every rank, with what it is told about its place.

    `source` as in :class:`ModuleSpec`. `requires` names the distributions it imports, e.g. `torchtitan`.
    """

    source: str
    source_sha256: str
    function: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    requires: tuple[str, ...] = ()
    seed: int = 0

    @property
    def family(self) -> str:
        return self.function


Spec = HfSpec | ModuleSpec | OpSpec | AttentionSpec | ScriptSpec


@dataclass(frozen=True)
class Workload:
    """A spec and its name. Equal specs have equal hashes on every machine and Python version."""

    spec: Spec

    @property
    def kind(self) -> WorkloadKind:
        return _KINDS[type(self.spec)]

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
            case WorkloadKind.OP:
                return cls(OpSpec(**spec))
            case WorkloadKind.ATTENTION:
                return cls(AttentionSpec(**{**spec, "modification": Modification(spec.get("modification"))}))
            case WorkloadKind.SCRIPT:
                return cls(ScriptSpec(**{**spec, "requires": tuple(spec.get("requires", ()))}))
            case kind:
                assert_never(kind)


_KINDS: Final[Mapping[type[Spec], WorkloadKind]] = {
    HfSpec: WorkloadKind.HF,
    ModuleSpec: WorkloadKind.MODULE,
    OpSpec: WorkloadKind.OP,
    AttentionSpec: WorkloadKind.ATTENTION,
    ScriptSpec: WorkloadKind.SCRIPT,
}
