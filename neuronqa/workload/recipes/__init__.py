"""What a family needs beyond the general rules: each recipe is named for its family and says why it is needed."""

from __future__ import annotations

from typing import Any

from neuronqa.workload.architectures import Architecture
from neuronqa.workload.inputs.adaptation import Adaptation
from neuronqa.workload.inputs.scene import Scene
from neuronqa.workload.levels import Level


def named(model_type: str) -> str:
    """Name and version of the recipe of a family, or empty."""
    del model_type
    return ""


def adjust(architecture: Architecture, full: dict[str, Any], small: dict[str, Any], level: Level) -> None:
    """Let the family's recipe change a shrunken config, in place."""
    del architecture, full, small, level


def adaptation(scene: Scene) -> Adaptation:
    """Where repair starts."""
    del scene
    return Adaptation()


def inputs(scene: Scene, given: dict[str, Any]) -> None:
    """Let the family's recipe change the inputs, in place."""
    del scene, given


def example(architecture: Architecture) -> dict[str, Any] | None:
    """A complete config where the class's own defaults do not build."""
    del architecture
    return None
