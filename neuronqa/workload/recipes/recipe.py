"""What a recipe is: data plus small functions, with the reason a family needs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from neuronqa.workload.architectures import Architecture
from neuronqa.workload.inputs.adaptation import Adaptation
from neuronqa.workload.inputs.scene import Scene
from neuronqa.workload.levels import Level


@dataclass(frozen=True, slots=True)
class Shrunk:
    """A (sub-)config before and after shrinking; recipes change `small`."""

    full: Mapping[str, Any]
    small: dict[str, Any]
    root: dict[str, Any]
    """The whole shrunken config that `small` is a part of."""
    level: Level


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What one family, or several that share a design, needs beyond the general rules."""

    families: tuple[str, ...]
    """Model types; of sub-configs too."""
    reason: str
    version: int = 1
    shrink: Callable[[Shrunk], None] | None = None
    """Mends the shrunken fields of the family's own (sub-)config."""
    adaptation: Adaptation = field(default_factory=Adaptation)
    """Where repair starts."""
    inputs: Callable[[Scene, dict[str, Any]], None] | None = None
    """Changes the inputs, before labels are made."""
    labels: Callable[[Scene, dict[str, Any]], dict[str, Any] | None] | None = None
    """The targets, where the task alone does not tell them; None: none."""
    completion: Mapping[str, Any] = field(default_factory=dict)
    """Values that every checkpoint carries and the class leaves open. Used by the audit only."""
    example: Callable[[Architecture], dict[str, Any]] | None = None
    """A complete config, where the class's own defaults do not build. Used by the audit only."""


def fixed(**values: Any) -> Callable[[Shrunk], None]:
    """A `shrink` that sets fields, those that are there, to what the family needs."""

    def shrink(shrunk: Shrunk) -> None:
        shrunk.small.update({name: value for name, value in values.items() if name in shrunk.small})

    return shrink


def kept(*names: str) -> Callable[[Shrunk], None]:
    """A `shrink` that leaves fields as they were."""

    def shrink(shrunk: Shrunk) -> None:
        shrunk.small.update({name: shrunk.full[name] for name in names if name in shrunk.full})

    return shrink


def defaults(model_type: str) -> dict[str, Any]:
    """Every field of a config class at its default."""
    fields = CONFIG_MAPPING[model_type]().to_dict()
    assert isinstance(fields, dict)
    return fields
