"""Placeholder tokens: where in a text the features of an image, a video or a sound go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import Tensor

from neuronqa.workload.inputs.scene import Scene
from neuronqa.workload.inputs.table import MODALITIES

TOKENS: Final[Mapping[str, tuple[str, ...]]] = {
    "image": (
        "image_token_id",
        "image_token_index",
        "img_token_id",
        "im_patch_id",
        "image_patch_id",
        "vision_token_id",
        "media_token_id",
        "image_pad_token_id",
    ),
    "video": ("video_token_id", "video_token_index"),
    "audio": ("audio_token_id", "audio_token_index", "sound_token_id", "speech_token_id", "audio_pad_token_id"),
}


def token(scene: Scene, modality: str) -> int | None:
    """The id that stands for one feature of `modality`."""
    names = TOKENS[modality]
    for config in (scene.config, scene.read("thinker_config"), scene.text):
        value = scene.read(*names, of=config) if config is not None else None
        if value is not None:
            return _first(value)
    return _search(scene.config.to_dict(), names)


def insert(scene: Scene, ids: Tensor, modality: str, count: int) -> Tensor:
    """Put `count` placeholders, spread evenly over the batch, before the text; the last row takes what is missing."""
    place = token(scene, modality)
    if place is None or ids.dim() != 2:
        return ids
    rows = ids.shape[0]
    each = -(-count // rows)
    plain = torch.where(ids == place, torch.full_like(ids, 3 if place != 3 else 4), ids)
    before = torch.full((rows, each), place)
    if each * rows > count:
        before[-1, : each * rows - count] = plain[-1, 0]
    start = scene.read("vision_start_token_id")
    if modality == "image" and isinstance(start, int):
        before = torch.cat([torch.full((rows, 1), start), before], 1)
    return torch.cat([before, plain], 1)


def unplaced(scene: Scene, inputs: Mapping[str, Any]) -> str:
    """A modality whose features are given while no placeholder stands for them, or empty.

    Models that scatter features into a text scatter nothing then, and do not say so.
    """
    ids = inputs.get("input_ids")
    if not isinstance(ids, Tensor):
        return ""
    for name, modality in MODALITIES.items():
        place = token(scene, modality) if name in inputs and modality in TOKENS else None
        if place is not None and not bool((ids == place).any()):
            return modality
    return ""


def kinds(scene: Scene, ids: Tensor) -> Tensor:
    """For each token: 0 text, 1 image, 2 video, 3 audio."""
    out = torch.zeros_like(ids)
    for number, modality in enumerate(TOKENS, 1):
        place = token(scene, modality)
        if place is not None:
            out[ids == place] = number
    return out


def _search(fields: dict[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        if isinstance(fields.get(name), int):
            return int(fields[name])
    found = (_search(value, names) for value in fields.values() if isinstance(value, dict))
    return next((place for place in found if place is not None), None)


def _first(value: Any) -> int | None:
    if isinstance(value, list | tuple):
        return int(value[0]) if value else None
    return int(value)
