"""Recipes of text families."""

from __future__ import annotations

from typing import Final

from neuronqa.workload.recipes.recipe import Recipe

RECIPES: Final[tuple[Recipe, ...]] = ()
