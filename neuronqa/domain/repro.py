"""A reproduction: a folder with a script of its own, and what is said of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final

from neuronqa.domain.case import Variant
from neuronqa.domain.outcome import Check, Outcome

SCHEMA: Final = 1
SCRIPT_FILE: Final = "repro.py"
ABOUT_FILE: Final = "about.json"
OPERATOR_FILE: Final = "operator.pt"
CALLED_FILE: Final = "operator.json"
"""The operator's name as it was called, overload and all."""
MODEL_FILE: Final = "model.pt"
CONFIG_FILE: Final = "config.json"
LOSS_FILE: Final = "loss.json"


class Grain(StrEnum):
    """How small a script is."""

    OPERATOR = "operator"
    """One operator with the arguments of its first call."""
    MODEL = "model"
    """The shrunken transformers model with its inputs."""
    FACTORY = "factory"
    """A factory's own file."""
    WORKLOAD = "workload"
    """The workload as NeuronQA builds it: the script needs neuronqa."""


@dataclass(frozen=True, kw_only=True)
class Repro:
    """What a reproduction is of, and whether it shows it."""

    key: str
    """The cause key that was to appear."""
    check: Check
    outcome: Outcome
    variant: Variant
    device: str
    profile: str
    case: str
    class_name: str
    grain: Grain
    lines: int
    """Of the script."""
    words: str
    """What the sweep's judge said."""
    same: bool
    """Did the same cause key appear when the script's model was run and judged again?"""
    seen: tuple[str, ...] = ()
    """Failing outcomes of that run."""
    same_build: bool = True
    """Is the device's build the sweep's?"""
    versions: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA,
            **asdict(self),
            "outcome": str(self.outcome),
            "variant": str(self.variant),
            "seen": list(self.seen),
        }
