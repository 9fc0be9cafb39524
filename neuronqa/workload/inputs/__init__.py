"""Inputs made to fit: from the signature of `forward`, the config, the task and what a model says it misses."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor

from neuronqa.workload.architectures import Task
from neuronqa.workload.inputs import placeholders, sound
from neuronqa.workload.inputs.adaptation import Adaptation
from neuronqa.workload.inputs.scene import Form, Scene
from neuronqa.workload.inputs.table import ALWAYS, MAKERS

_CHOICE_ARGUMENTS = ("input_ids", "bbox", "attention_mask", "token_type_ids")
_FRAME_MASKS = (
    "input_features_mask",
    "feature_attention_mask",
    "input_features_attention_mask",
    "audio_attention_mask",
)
_PIXEL_MASKS = ("pixel_mask", "pixel_attention_mask")
_BY_OTHER_NAMES = ("inputs",)
"""A main input that has another name for each kind of input."""
_HEARING = (Task.CTC, Task.TRANSDUCER)


class UnknownArgument(Exception):
    """`forward` demands an argument that no function here makes."""


def synthesise(scene: Scene, adaptation: Adaptation) -> dict[str, Any]:
    """Make every argument of `forward`, labels included. Raises UnknownArgument."""
    given = {name: _form(scene, adaptation, name).make() for name in chosen(scene, adaptation)}
    _resize(scene, adaptation, given)
    _agree_on_text(scene, adaptation, given)
    _agree_on_sound(scene, given)
    _agree_on_pixels(scene, given)
    if "use_cache" in scene.parameters:
        given["use_cache"] = False
    return given


def chosen(scene: Scene, adaptation: Adaptation) -> list[str]:
    """Names of the arguments that are made, in the order of the signature."""
    main = getattr(scene.model, "main_input_name", "input_ids")
    names = []
    for name, parameter in scene.parameters.items():
        required = parameter.default is inspect.Parameter.empty
        asked = required or (name == main and name not in _BY_OTHER_NAMES) or name in ALWAYS or name in adaptation.extra
        if name in adaptation.without or not asked or _made_by_labels(scene, adaptation, name, required=required):
            continue
        if name in MAKERS:
            names.append(name)
        elif required:
            raise UnknownArgument(name)
    return names


def forms(scene: Scene, name: str) -> list[Form]:
    """The forms an argument comes in; none where nothing makes it."""
    maker = MAKERS.get(name)
    return maker(scene) if maker else []


def _made_by_labels(scene: Scene, adaptation: Adaptation, name: str, *, required: bool) -> bool:
    """A decoder's inputs are its labels, shifted, wherever a head has a language-model loss."""
    if name != "decoder_input_ids" or required or name in adaptation.extra or "labels" not in scene.parameters:
        return False
    classifies = any(word in scene.class_name for word in ("Classification", "Question"))
    return not scene.class_name.endswith("Model") and not classifies


def _form(scene: Scene, adaptation: Adaptation, name: str) -> Form:
    found = forms(scene, name)
    wanted = adaptation.forms.get(name)
    return next((form for form in found if form.label == wanted), found[0])


def _resize(scene: Scene, adaptation: Adaptation, given: dict[str, Any]) -> None:
    for place, size in sorted(adaptation.sizes.items()):
        name, axis = place.rsplit("/", 1)
        if isinstance(given.get(name), Tensor):
            shape = list(given[name].shape)
            shape[int(axis)] = size
            given[name] = scene.noise(name, *shape)


def _agree_on_text(scene: Scene, adaptation: Adaptation, given: dict[str, Any]) -> None:
    """Make what goes with the text fit it: choices, the end, placeholders and the kinds of tokens."""
    if scene.task is Task.MULTIPLE_CHOICE:
        for name in set(_CHOICE_ARGUMENTS) & set(given):
            given[name] = torch.stack([given[name], given[name].roll(1, dims=0)], 1)
    ids = given.get("input_ids")
    if not isinstance(ids, Tensor) or ids.dim() != 2:
        return
    end = scene.read("eos_token_id", of=scene.text)
    end = end[0] if isinstance(end, list) and end else end
    if isinstance(end, int) and 0 <= end < scene.vocabulary:
        ids[:, -1] = end
    for modality, count in sorted(adaptation.placeholders.items()):
        ids = placeholders.insert(scene, ids, modality, count)
    given["input_ids"] = ids
    if "attention_mask" in given:
        given["attention_mask"] = torch.ones_like(ids)
    if "mm_token_type_ids" in scene.parameters:
        given["mm_token_type_ids"] = placeholders.kinds(scene, ids)
    if "token_type_ids" in given and given["token_type_ids"].shape != ids.shape:
        given["token_type_ids"] = (placeholders.kinds(scene, ids) == 1).long()


def _agree_on_sound(scene: Scene, given: dict[str, Any]) -> None:
    heard = given.get("input_features", given.get("input_values"))
    if not isinstance(heard, Tensor):
        return
    length = _frames(scene, heard)
    mask = torch.ones(heard.shape[0], length, dtype=torch.long)
    for name in _FRAME_MASKS:
        if name in scene.parameters:
            given[name] = mask
    if scene.task in _HEARING and "attention_mask" in scene.parameters:
        given["attention_mask"] = mask
    if "is_longer" in scene.parameters:
        given["is_longer"] = torch.zeros(heard.shape[0], 1, dtype=torch.bool)
    if "audio_feature_lengths" in scene.parameters:
        given["audio_feature_lengths"] = torch.full((heard.shape[0],), length)


def _agree_on_pixels(scene: Scene, given: dict[str, Any]) -> None:
    """A mask has the shape of the pixels without their channels."""
    pixels = given.get("pixel_values")
    if "spatial_shapes" in scene.parameters or not isinstance(pixels, Tensor) or pixels.dim() < 4:
        return
    for name in _PIXEL_MASKS:
        if name in given:
            given[name] = torch.ones(*pixels.shape[:-3], *pixels.shape[-2:], dtype=torch.long)


def _frames(scene: Scene, heard: Tensor) -> int:
    if heard.dim() == 2 or (heard.dim() == 3 and heard.shape[1] == sound.mel(scene)):
        return heard.shape[-1]
    return heard.shape[1] if heard.dim() == 3 else heard.shape[-2]
