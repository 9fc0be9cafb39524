"""Recipes of families whose towers take pictures and sounds in a layout of their own."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor

from neuronqa.workload.inputs.scene import Scene
from neuronqa.workload.recipes.recipe import Recipe, Shrunk, fixed

POOLS_A_SIDE: Final = 2
PATCHES_A_SIDE: Final = 8
TILES: Final = 2
STATES: Final = 8


def _positions(scene: Scene, side: int) -> Tensor:
    """Column and row of each patch of a square picture."""
    rows, columns = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    return torch.stack([columns, rows], -1).reshape(1, -1, 2).repeat(scene.batch, 1, 1)


def _pooled_patches(scene: Scene, given: dict[str, Any]) -> None:
    """Flat patches with their places; as many a side as the pool takes twice."""
    side = POOLS_A_SIDE * scene.count("pooling_kernel_size", of=scene.vision, default=1)
    patch = scene.count("patch_size", of=scene.vision, default=16)
    width = scene.count("patch_dim", "model_patch_dim", of=scene.vision, default=3 * patch * patch)
    if "pixel_values" in given:
        given["pixel_values"] = scene.uniform("pixel_values", scene.batch, side * side, width)
        for name in ("pixel_position_ids", "image_position_ids"):
            if name in scene.parameters:
                given[name] = _positions(scene, side)
    _mel_frames(scene, given)


def _mel_frames(scene: Scene, given: dict[str, Any]) -> None:
    """As many bins as the convolutions before the tower halve twice to their channels."""
    channels = scene.read("subsampling_conv_channels", of=scene.audio)
    width = channels[0] if channels else scene.count("audio_embed_dim", of=scene.audio, default=128)
    if "input_features" in given:
        given["input_features"] = scene.noise("sound", scene.batch, FRAMES, width)
        if "input_features_mask" in scene.parameters:
            given["input_features_mask"] = torch.ones(scene.batch, FRAMES, dtype=torch.bool)


FRAMES: Final = 16


def _tokens_of_patches(scene: Scene, given: dict[str, Any]) -> None:
    """One block of pixels for each token of the language model."""
    side = scene.count("patch_size", of=scene.vision, default=20) * scene.count(
        "spatial_merge_size", of=scene.vision, default=2
    )
    if "pixel_values" in given:
        count = scene.batch * POOLS_A_SIDE**2
        given["pixel_values"] = scene.noise("pixel_values", count, side, side, 3)
        given["image_grid_thw"] = torch.tensor([[1, POOLS_A_SIDE, POOLS_A_SIDE]] * scene.batch)


def _folded_frames(scene: Scene, given: dict[str, Any]) -> None:
    """Patches of several frames, channels last; time and space are folded away step by step."""
    patch = scene.count("patch_size", of=scene.vision, default=40)
    frames = scene.count("temporal_patch_size", of=scene.vision, default=2)
    if "pixel_values" in given:
        given["pixel_values"] = scene.noise("pixel_values", scene.batch, frames, patch, patch, 3)


def _packed_strip(scene: Scene, given: dict[str, Any]) -> None:
    """Patches of all pictures side by side in one strip, with the grid of each."""
    patch = scene.count("patch_size", of=scene.vision, default=14)
    if "pixel_values" in given:
        count = scene.batch * PATCHES_A_SIDE**2
        given["pixel_values"] = scene.noise("pixel_values", 1, 3, patch, count * patch)
        given["target_sizes"] = torch.tensor([[PATCHES_A_SIDE, PATCHES_A_SIDE]] * scene.batch)


def _tiles(scene: Scene, given: dict[str, Any]) -> None:
    """Pictures cut in tiles, and who attends to which; the text tower alone gets states to attend to."""
    batch, most = scene.batch, scene.count("max_num_tiles", of=scene.vision, default=4)
    if "pixel_values" in given:
        side = scene.count("image_size", of=scene.vision, default=56)
        given["pixel_values"] = scene.noise("pixel_values", batch, 1, most, 3, side, side)
        given["aspect_ratio_ids"] = torch.full((batch, 1), TILES)
        given["aspect_ratio_mask"] = torch.ones(batch, 1, most, dtype=torch.long)
        if "cross_attention_mask" in scene.parameters:
            given["cross_attention_mask"] = torch.ones(batch, scene.tokens, 1, most, dtype=torch.long)
    elif "cross_attention_states" in scene.parameters:
        given["cross_attention_states"] = scene.noise("states", batch, STATES, scene.hidden)


def _decision(scene: Scene, given: dict[str, Any]) -> None:
    """One prompt with two questions, of two options each."""
    given["input_ids"] = scene.ids("input_ids", 1, scene.tokens)
    given["marks"] = torch.tensor([[scene.tokens // 2, scene.tokens - 1]])
    given["num_options"] = torch.tensor([[2, 2]])
    given["question_type_ids"] = torch.tensor([[0, 0]])


def _one_input(scene: Scene, given: dict[str, Any]) -> None:
    """The bare model takes what its preprocessors make, heads what the preprocessors take."""
    if scene.class_name == "PerceiverModel":
        given["inputs"] = scene.noise("inputs", scene.batch, scene.tokens, scene.count("d_model", default=64))
    else:
        given.pop("inputs", None)


def _small_codebook(shrunk: Shrunk) -> None:
    """The codec of pictures is built on group norms of 32 groups."""
    small = shrunk.small
    small |= {"base_channels": 32, "latent_channels": 32}
    for name in ("channel_multiplier", "num_res_blocks"):
        if name in small:
            small[name] = [1, 1] if name == "channel_multiplier" else 1


RECIPES: Final[tuple[Recipe, ...]] = (
    Recipe(
        families=(
            "gemma4",
            "gemma4_vision",
            "gemma4_audio",
            "embedding_gemma2",
            "gemma4_unified",
            "gemma4_unified_vision",
            "diffusion_gemma",
        ),
        reason="patches come flat with their places, sound in frames of its own",
        inputs=_pooled_patches,
    ),
    Recipe(
        families=("inkling2", "inkling2_loop", "inkling2_vision"),
        reason="one block of pixels a token, channels last",
        inputs=_tokens_of_patches,
    ),
    Recipe(families=("inkling_mm_model",), reason="patches of several frames, channels last", inputs=_folded_frames),
    Recipe(
        families=(
            "minicpmv4_6",
            "minicpmv4_7",
            "minicpm_ocr",
            "minicpmv4_6_vision",
            "minicpmv4_7_vision",
            "minicpm_ocr_vision",
        ),
        reason="patches of all pictures come in one strip",
        inputs=_packed_strip,
    ),
    Recipe(
        families=("minicpmv4_6_vision", "minicpmv4_7_vision", "minicpm_ocr_vision"),
        reason="patches are merged after a layer that must be there",
        shrink=fixed(insert_layer_id=0),
    ),
    Recipe(
        families=("mllama", "mllama_vision_model", "mllama_text_model"),
        reason="pictures come in tiles, and the text attends to them",
        inputs=_tiles,
    ),
    Recipe(families=("jev",), reason="options are scored at marks in the prompt", inputs=_decision),
    Recipe(families=("janus_vqgan",), reason="group norms have 32 groups", shrink=_small_codebook),
    Recipe(
        families=("llama4_vision_model",),
        reason="the class's own widths do not fit each other",
        completion={
            "hidden_size": 1408,
            "intermediate_size": 5632,
            "projector_input_dim": 4096,
            "projector_output_dim": 4096,
            "vision_output_dim": 4096,
        },
    ),
    Recipe(
        families=("hunyuan_vl_text",),
        reason="the class leaves its rotary sections open",
        completion={
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [16, 16, 16, 16]}
        },
    ),
    Recipe(families=("qwen2_audio",), reason="the class leaves it open", completion={"ignore_index": -100}),
    Recipe(
        families=("perceiver",),
        reason="checkpoints cross-attend with one head",
        completion={"num_cross_attention_heads": 1},
        inputs=_one_input,
    ),
    Recipe(
        families=("qwen3_omni_moe_talker",), reason="the class leaves it open", completion={"spatial_merge_size": 2}
    ),
    Recipe(
        families=("depth_pro",), reason="pictures are read at three scales", shrink=fixed(patch_size=64, image_size=256)
    ),
)
