"""Arguments of time series, of policies over trajectories, and of diffusion steps."""

from __future__ import annotations

from typing import Final

import torch

from neuronqa.workload.inputs.scene import Form, Scene

_UNIVARIATE: Final = frozenset({"time_series_transformer", "informer", "autoformer", "timesfm", "timesfm2_5"})
REGIONS: Final = 4


def _past(scene: Scene) -> int:
    lags = scene.read("lags_sequence") or [0]
    return scene.count("context_length", default=32) + int(max(lags))


def _future(scene: Scene) -> int:
    return scene.count("prediction_length", "horizon_length", default=8)


def _channels(scene: Scene) -> int:
    return scene.count("num_input_channels", "input_size", default=1)


def _series(scene: Scene, length: int) -> tuple[int, ...]:
    flat = _channels(scene) == 1 and scene.model_type in _UNIVARIATE
    return (scene.batch, length) if flat else (scene.batch, length, _channels(scene))


def past_values(scene: Scene) -> list[Form]:
    return [Form("series", lambda: scene.noise("past_values", *_series(scene, _past(scene))))]


def past_mask(scene: Scene) -> list[Form]:
    return [Form("ones", lambda: torch.ones(_series(scene, _past(scene))))]


def past_padding(scene: Scene) -> list[Form]:
    length = scene.count("context_length", default=32)
    return [Form("none", lambda: torch.zeros(scene.batch, length, dtype=torch.long))]


def future_values(scene: Scene) -> list[Form]:
    return [Form("series", lambda: scene.noise("future_values", *_series(scene, _future(scene))))]


def past_features(scene: Scene) -> list[Form]:
    n = scene.count("num_time_features", default=1)
    return [Form("features", lambda: scene.noise("past_time_features", scene.batch, _past(scene), n))]


def future_features(scene: Scene) -> list[Form]:
    n = scene.count("num_time_features", default=1)
    return [Form("features", lambda: scene.noise("future_time_features", scene.batch, _future(scene), n))]


def static_categories(scene: Scene) -> list[Form]:
    n = scene.count("num_static_categorical_features", default=1)
    return [Form("zeros", lambda: torch.zeros(scene.batch, n, dtype=torch.long))]


def static_reals(scene: Scene) -> list[Form]:
    n = scene.count("num_static_real_features", default=1)
    return [Form("reals", lambda: scene.noise("static_real_features", scene.batch, n))]


def frequency(scene: Scene) -> list[Form]:
    return [Form("zeros", lambda: torch.zeros(scene.batch, 1, dtype=torch.long))]


def states(scene: Scene) -> list[Form]:
    return [
        Form("states", lambda: scene.noise("states", scene.batch, scene.tokens, scene.count("state_dim", default=17)))
    ]


def actions(scene: Scene) -> list[Form]:
    width = scene.count("act_dim", default=0)
    if width:
        return [Form("actions", lambda: scene.noise("actions", scene.batch, scene.tokens, width))]
    chunk, most = scene.count("chunk_size", default=50), scene.count("max_action_dim", default=32)
    return [Form("chunk", lambda: scene.noise("actions", scene.batch, chunk, most))]


def rewards(scene: Scene) -> list[Form]:
    return [Form("rewards", lambda: scene.noise("rewards", scene.batch, scene.tokens, 1))]


def state(scene: Scene) -> list[Form]:
    width = scene.count("max_state_dim", default=32)
    return [Form("state", lambda: scene.noise("state", scene.batch, width))]


def timestep(scene: Scene) -> list[Form]:
    return [Form("uniform", lambda: scene.uniform("timestep", scene.batch))]


def latents(scene: Scene) -> list[Form]:
    width = scene.count("hidden_size", "latent_dim", default=64)
    return [
        Form("channels-first", lambda: scene.noise("latents", scene.batch, width, scene.tokens)),
        Form("channels-last", lambda: scene.noise("latents", scene.batch, scene.tokens, width)),
    ]


def queries(scene: Scene) -> list[Form]:
    return [Form("queries", lambda: scene.noise("query_embeds", scene.batch, 8, scene.hidden))]


def regions(scene: Scene, width: str) -> list[Form]:
    """Detector features of a few regions, as wide as the config's field `width` says."""
    n = scene.count(width, default=64)
    return [Form("regions", lambda: scene.uniform(width, scene.batch, REGIONS, n))]


def regions_mask(scene: Scene) -> list[Form]:
    return [Form("ones", lambda: torch.ones(scene.batch, REGIONS, dtype=torch.long))]
