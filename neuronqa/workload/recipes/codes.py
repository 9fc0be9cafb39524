"""Recipes of families that turn pictures and sounds into codes of the text's own vocabulary."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor

from neuronqa.workload.architectures import Architecture
from neuronqa.workload.inputs import placeholders, sound
from neuronqa.workload.inputs.scene import Scene
from neuronqa.workload.recipes.recipe import Recipe, Shrunk, defaults

CODES: Final = 32
FIRST_CODE: Final = 400
CODE_WIDTH: Final = 32
"""The codecs are built on group norms of 32 groups."""
CODES_A_SIDE: Final = 4
PLAIN: Final = 3
CODEC_STRIDE: Final = 1920
UNREAD: Final = -100


def _coded_pictures(shrunk: Shrunk) -> None:
    """A picture is turned into tokens of the text's own vocabulary, which a map names."""
    small, codes = shrunk.small, range(CODES)
    vision = next(small[name] for name in ("vq_config", "vision_config") if isinstance(small.get(name), dict))
    vision.update({name: CODES for name in ("num_embeddings", "codebook_size") if name in vision})
    vision.update({n: CODE_WIDTH for n in ("base_channels", "latent_channels", "hidden_size") if n in vision})
    vision.update({"channel_multiplier": [1, 1], "num_res_blocks": 1, "attn_resolutions": []})
    letters = {"IMGIMG" + "".join(chr(ord("A") + int(d)) for d in f"{code}") + "Z": code for code in codes}
    names = letters if small.get("model_type") == "chameleon" else {f"<|visual token {c:06d}|>": c for c in codes}
    known = {"<image>": FIRST_CODE - 1, "<|extra_200|>": FIRST_CODE - 2}
    small["vocabulary_map"] = known | {name: FIRST_CODE + code for name, code in names.items()}


def _coded_example(architecture: Architecture) -> dict[str, Any]:
    return defaults(architecture.model_type) | {"vocabulary_map": {"<image>": 8711}}


def _places_of_codes(scene: Scene, given: dict[str, Any]) -> None:
    """A placeholder for each code of a picture; where pictures have sizes, each row of codes ends with a token."""
    pixels, ids = given.get("pixel_values"), given.get("input_ids")
    if not isinstance(pixels, Tensor) or not isinstance(ids, Tensor):
        return
    multipliers = scene.read("channel_multiplier", of=scene.read("vq_config")) or [1]
    side = CODES_A_SIDE * 2 ** (len(multipliers) - 1)
    given["pixel_values"] = scene.noise("pixel_values", scene.batch, 3, side, side)
    columns = CODES_A_SIDE
    if "image_sizes" in scene.parameters:
        given["image_sizes"] = torch.tensor([[side, side]] * scene.batch)
        columns += 1
    place = scene.config.vocabulary_map["<image>"]
    coded = (ids >= place) & (ids < FIRST_CODE + CODES)  # a text has none: heads give them no chance at all
    plain = torch.where(coded, torch.full_like(ids, PLAIN), ids)
    given["input_ids"] = torch.cat([torch.full((scene.batch, CODES_A_SIDE * columns), place), plain], 1)


def _ranges_of_codes(shrunk: Shrunk) -> None:
    """Codes of pictures, then of sounds, follow each other in the vocabulary."""
    small = shrunk.small
    for name in ("vision_config", "audio_config"):
        small[name]["codebook_size"] = CODES
    small |= {"image_token_offset": FIRST_CODE, "audio_token_offset": FIRST_CODE + CODES}


def _few_codes(shrunk: Shrunk) -> None:
    """The codec's codes are tokens of the two stacks, which have fewer now."""
    codec = shrunk.small.get("codec_config")
    if isinstance(codec, dict) and "codebook_size" in codec:
        codec["codebook_size"] = CODES


def _clips(scene: Scene, given: dict[str, Any]) -> None:
    """Each text begins with a clip, a placeholder for each of its frames."""
    frames = sound.SAMPLES // CODEC_STRIDE
    given["input_ids"] = placeholders.insert(scene, given["input_ids"], "audio", scene.batch * frames)
    given["input_values"] = scene.noise("sound", scene.batch, 1, sound.SAMPLES)
    given["input_values_cutoffs"] = torch.full((scene.batch, 1), sound.SAMPLES)


def _clip_labels(scene: Scene, given: dict[str, Any]) -> dict[str, Any] | None:
    """Frames of sound alone are learnt; the model puts their codes in the place of their token."""
    ids, place = given["input_ids"], placeholders.token(scene, "audio")
    if "labels" not in scene.parameters or "input_values" not in given or place is None:
        return None
    return {"labels": torch.where(ids == place, ids, torch.full_like(ids, UNREAD))}


RECIPES: Final[tuple[Recipe, ...]] = (
    Recipe(
        families=("chameleon", "emu3"),
        reason="pictures become tokens by a map that checkpoints carry",
        version=2,
        shrink=_coded_pictures,
        example=_coded_example,
        inputs=_places_of_codes,
    ),
    Recipe(families=("apertus1p5",), reason="codes lie in ranges of the vocabulary", shrink=_ranges_of_codes),
    Recipe(
        families=("csm",),
        reason="clips stand in the text, and are what is learnt",
        version=2,
        shrink=_few_codes,
        inputs=_clips,
        labels=_clip_labels,
    ),
)
