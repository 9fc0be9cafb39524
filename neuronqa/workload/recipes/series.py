"""Recipes of time series families."""

from __future__ import annotations

from typing import Any, Final

from neuronqa.workload.architectures import Architecture
from neuronqa.workload.recipes.recipe import Recipe, defaults


def _forecast(architecture: Architecture) -> dict[str, Any]:
    return defaults(architecture.model_type) | {
        "prediction_length": 8,
        "context_length": 16,
        "num_time_features": 1,
        "lags_sequence": [1, 2, 3],
        "input_size": 1,
        "feature_size": 6,
    }


RECIPES: Final[tuple[Recipe, ...]] = (
    Recipe(
        families=("time_series_transformer", "informer", "autoformer"),
        reason="the class leaves the horizon open, which every forecast has",
        example=_forecast,
    ),
)
