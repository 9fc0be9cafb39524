"""What a family needs beyond the general rules: each recipe is named for its family and says why it is needed."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from neuronqa.workload.architectures import Architecture
from neuronqa.workload.inputs.adaptation import Adaptation
from neuronqa.workload.inputs.scene import Scene
from neuronqa.workload.levels import Level
from neuronqa.workload.recipes.recipe import Recipe, Shrunk
from neuronqa.workload.tree import nodes


@cache
def table() -> Mapping[str, Recipe]:
    """Every recipe of this package's modules by model type.

    Recipes of one family are joined. Raises ValueError where two say the same thing of it.
    """
    found: dict[str, Recipe] = {}
    for module in sorted(module.name for module in pkgutil.iter_modules(__path__)):
        recipes: tuple[Recipe, ...] = getattr(importlib.import_module(f"{__name__}.{module}"), "RECIPES", ())
        for recipe in recipes:
            for family in recipe.families:
                found[family] = _joined(family, found[family], recipe) if family in found else recipe
    return found


def _joined(family: str, one: Recipe, other: Recipe) -> Recipe:
    told = {}
    for name in _SAID_ONCE:
        first, second = getattr(one, name), getattr(other, name)
        if first is not None and second is not None:
            raise ValueError(f"two recipes for the {name} of {family}")
        told[name] = first if first is not None else second
    return Recipe(
        families=(family,),
        reason=f"{one.reason}; {other.reason}",
        version=max(one.version, other.version),
        adaptation=other.adaptation.merged(one.adaptation),
        completion={**one.completion, **other.completion},
        **told,
    )


_SAID_ONCE: Final = ("shrink", "inputs", "labels", "example")


def named(config: dict[str, Any]) -> str:
    """Names and versions of the recipes a config uses, or empty."""
    used = {node.model_type: table()[node.model_type] for node in nodes(config) if node.model_type in table()}
    return ",".join(f"{family}@{recipe.version}" for family, recipe in sorted(used.items()))


def adjust(full: dict[str, Any], small: dict[str, Any], level: Level) -> None:
    """Let each family's recipe mend its own part of a shrunken config, in place; inner parts first."""
    before = {node.path: node.fields for node in nodes(full)}
    for node in reversed(nodes(small)):
        recipe = table().get(node.model_type)
        if recipe is not None and recipe.shrink is not None:
            recipe.shrink(Shrunk(before.get(node.path, {}), node.fields, small, level))


def adaptation(scene: Scene) -> Adaptation:
    """Where repair starts."""
    recipe = table().get(scene.model_type)
    return recipe.adaptation if recipe else Adaptation()


def inputs(scene: Scene, given: dict[str, Any]) -> None:
    """Let the family's recipe change the inputs, in place."""
    recipe = table().get(scene.model_type)
    if recipe is not None and recipe.inputs is not None:
        recipe.inputs(scene, given)


def labels(scene: Scene, given: dict[str, Any], usual: dict[str, Any]) -> dict[str, Any]:
    """The targets: the family's own where its recipe makes them, else the task's usual ones."""
    recipe = table().get(scene.model_type)
    if recipe is None or recipe.labels is None:
        return usual
    own = recipe.labels(scene, given)
    return usual if own is None else own


def complete(fields: dict[str, Any]) -> None:
    """Fill in, everywhere in an example config, what every checkpoint carries and the classes leave open."""
    for node in nodes(fields):
        recipe = table().get(node.model_type)
        for name, value in (recipe.completion if recipe else {}).items():
            node.fields[name] = value


def example(architecture: Architecture) -> dict[str, Any] | None:
    """A complete config where the class's own defaults do not build."""
    recipe = table().get(architecture.model_type)
    return recipe.example(architecture) if recipe is not None and recipe.example is not None else None
