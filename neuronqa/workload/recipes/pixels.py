"""Recipes of families whose towers take pictures and sounds in a layout of their own."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor

from neuronqa.workload.architectures import Architecture
from neuronqa.workload.inputs import placeholders
from neuronqa.workload.inputs.adaptation import Adaptation
from neuronqa.workload.inputs.scene import Scene
from neuronqa.workload.recipes.recipe import Recipe, Shrunk, defaults, fixed
from neuronqa.workload.tree import is_count, nodes

POOLS_A_SIDE: Final = 2
PATCHES_A_SIDE: Final = 8
TILES: Final = 2
STATES: Final = 8
GRID_TOKENS: Final = 3
"""One of the whole picture, two of its crop."""
FRAMES: Final = 16
SOUND_FRAMES: Final = 4
SCALE_PATCH: Final = 56


def _positions(scene: Scene, side: int) -> Tensor:
    """Column and row of each patch of a square picture."""
    rows, columns = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    return torch.stack([columns, rows], -1).reshape(1, -1, 2).repeat(scene.batch, 1, 1)


def _pooled_patches(scene: Scene, given: dict[str, Any]) -> None:
    """Flat patches with their places; as many a side as the pool takes twice."""
    side = POOLS_A_SIDE * scene.count("pooling_kernel_size", of=scene.vision, default=1)
    patch = scene.count("model_patch_size", "patch_size", of=scene.vision, default=16)
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


def _canvas(scene: Scene, given: dict[str, Any]) -> None:
    """Pictures go to the encoder, whose text holds their places; a guess from the step before conditions the next."""
    side = POOLS_A_SIDE * scene.count("pooling_kernel_size", of=scene.vision, default=1)
    patch = scene.count("patch_size", of=scene.vision, default=16)
    given["pixel_values"] = scene.uniform("pixel_values", scene.batch, side * side, 3 * patch * patch)
    given["image_position_ids"] = _positions(scene, side)
    given["input_ids"] = placeholders.insert(scene, given["input_ids"], "image", scene.batch * POOLS_A_SIDE**2)
    ids = given.get("decoder_input_ids")
    if isinstance(ids, Tensor):
        given["self_conditioning_logits"] = scene.noise("guess", *ids.shape, scene.vocabulary)


def _three_scales(scene: Scene, given: dict[str, Any]) -> None:
    side = 4 * scene.count("patch_size", default=SCALE_PATCH)
    given["pixel_values"] = scene.noise("pixel_values", scene.batch, 3, side, side)


def _scales(shrunk: Shrunk) -> None:
    """The smallest scale of a picture is one patch, which each tower sees as a picture of its own."""
    small = shrunk.small
    small |= {"patch_size": SCALE_PATCH, "intermediate_hook_ids": [1, 0]}
    for name in ("image_model_config", "patch_model_config", "fov_model_config"):
        if isinstance(small.get(name), dict):
            small[name]["image_size"] = SCALE_PATCH


def _heard(scene: Scene, given: dict[str, Any]) -> None:
    """Sound is already a grid of codes; a placeholder stands for each frame."""
    _folded_frames(scene, given)
    bins = scene.count("n_mel_bins", "num_mel_bins", of=scene.audio, default=80)
    if "audio_input_ids" in scene.parameters:
        given["audio_input_ids"] = scene.integers("sound", 4, scene.batch, SOUND_FRAMES, bins)
        given["audio_input_ids_mask"] = torch.ones(scene.batch, SOUND_FRAMES, dtype=torch.long)
        given["input_ids"] = placeholders.insert(scene, given["input_ids"], "audio", scene.batch * SOUND_FRAMES)


def _protein(scene: Scene, given: dict[str, Any]) -> None:
    """A protein beside the text."""
    protein = scene.read("protein_encoder_config")
    size = scene.count("vocab_size", of=protein, default=33) if protein is not None else None
    given["protein_input_ids"] = scene.ids("protein", scene.batch, scene.tokens, vocabulary=size)
    given["protein_attention_mask"] = torch.ones(scene.batch, scene.tokens, dtype=torch.long)


def _image_mask(scene: Scene, given: dict[str, Any]) -> None:
    """One picture a text, which every token attends to."""
    side = scene.count("image_size", of=scene.vision, default=56)
    given["pixel_values"] = scene.noise("pixel_values", scene.batch, 1, 3, side, side)
    given["image_attention_mask"] = torch.ones(scene.batch, scene.tokens, 1, dtype=torch.long)


def _first_tokens(scene: Scene, given: dict[str, Any]) -> None:
    """The first tokens stand for the picture."""
    count = scene.count("latent_query_num", default=8)
    ids = given["input_ids"]
    given["input_ids"] = torch.cat([torch.full((ids.shape[0], count), 5), ids], 1)
    mask = torch.zeros_like(given["input_ids"])
    mask[:, :count] = 1
    given["image_embeds_position_mask"] = mask


def _crops_and_pools(scene: Scene, given: dict[str, Any]) -> None:
    """Flat patches of one crop a picture; four of them are pooled to one token."""
    if "pixel_values" not in given:
        return
    vision = scene.vision
    patch = scene.count("patch_size", of=vision, default=14)
    patches = scene.count("num_position_embeddings", of=vision, default=16)
    given["pixel_values"] = scene.noise("pixel_values", scene.batch, patches, 3 * patch * patch)
    pools = torch.arange(2 * GRID_TOKENS * scene.batch).view(scene.batch * GRID_TOKENS, 2)
    given["image_token_pooling"] = pools
    given["image_grids"] = torch.tensor([[1, 1, 1, POOLS_A_SIDE]] * scene.batch)
    given["image_num_crops"] = torch.ones(scene.batch, dtype=torch.long)
    given["input_ids"] = placeholders.insert(scene, given["input_ids"], "image", scene.batch * GRID_TOKENS)
    given["mm_token_type_ids"] = placeholders.kinds(scene, given["input_ids"])


def _queried(scene: Scene, given: dict[str, Any]) -> None:
    """A placeholder for each query of each picture (or frame), before the text."""
    queries = scene.count("num_query_tokens", default=32)
    if scene.class_name == "Blip2ForImageTextRetrieval":
        ids = given["input_ids"]
        given["input_ids"] = torch.cat([torch.full((ids.shape[0], queries), 5), ids], 1)
        given["attention_mask"] = torch.ones_like(given["input_ids"])
        return
    pixels = given.get("pixel_values")
    frames = pixels.shape[1] if isinstance(pixels, Tensor) and pixels.dim() == 5 else 1
    if isinstance(pixels, Tensor) and isinstance(given.get("input_ids"), Tensor):
        modality = "image" if frames == 1 else "video"
        given["input_ids"] = placeholders.insert(scene, given["input_ids"], modality, scene.batch * queries * frames)


def _with_text(architecture: Architecture) -> dict[str, Any]:
    """The queries of a retrieval model read text too."""
    fields = defaults(architecture.model_type)
    if architecture.class_name == "Blip2ForImageTextRetrieval":
        fields["qformer_config"]["use_qformer_text_input"] = True
    return fields


def _cameras(scene: Scene, given: dict[str, Any]) -> None:
    """Pictures of two cameras, both there."""
    vlm = scene.read("vlm_config")
    tower = scene.read("vision_config", of=vlm) if vlm is not None else None
    side = scene.count("image_size", of=tower, default=56) if tower is not None else 56
    given["pixel_values"] = scene.noise("pixel_values", scene.batch, 2, 3, side, side)
    given["pixel_attention_mask"] = torch.ones(scene.batch, 2, dtype=torch.bool)
    if "action_embeds" in scene.parameters:
        dit = scene.read("dit_config")
        width = scene.count("hidden_size", of=dit, default=64)
        given["action_embeds"] = scene.noise("actions", scene.batch, scene.count("chunk_size", default=8), width)


def _queries_of_patches(shrunk: Shrunk) -> None:
    """So many queries for so many patches, of the pictures there are."""
    vision = shrunk.small["vision_config"]
    patches = (vision["image_size"] // vision["patch_size"]) ** 2
    shrunk.small["projector_patch_to_query_dict"] = {str(patches): STATES}


def _own_hidden(architecture: Architecture) -> dict[str, Any]:
    fields = defaults(architecture.model_type)
    return fields | {"hidden_size": fields["text_config"]["hidden_size"]}


def _patches_a_picture(scene: Scene, given: dict[str, Any]) -> None:
    """Patches of each picture in a row of their own."""
    pixels = given.get("pixel_values")
    if isinstance(pixels, Tensor) and pixels.dim() == 2:
        given["pixel_values"] = pixels.view(scene.batch, -1, pixels.shape[-1])


def _adapted_width(shrunk: Shrunk) -> None:
    for node in nodes(shrunk.small):
        if "adapter_input_size" in node.fields and is_count(node.fields.get("hidden_size")):
            node.fields["adapter_input_size"] = node.fields["hidden_size"]


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
        ),
        reason="patches come flat with their places, sound in frames of its own",
        inputs=_pooled_patches,
    ),
    Recipe(
        families=("inkling2", "inkling2_loop", "inkling2_vision"),
        reason="one block of pixels a token, channels last",
        inputs=_tokens_of_patches,
    ),
    Recipe(families=("inkling_mm_model",), reason="patches of several frames, channels last", inputs=_heard),
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
        families=(
            "minicpmv4_6",
            "minicpmv4_7",
            "minicpm_ocr",
            "minicpmv4_6_vision",
            "minicpmv4_7_vision",
            "minicpm_ocr_vision",
        ),
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
        families=("depth_pro",),
        reason="pictures are read at three scales",
        shrink=_scales,
        inputs=_three_scales,
    ),
    Recipe(families=("diffusion_gemma",), reason="pictures go to the encoder", inputs=_canvas),
    Recipe(families=("evolla",), reason="a protein is read beside the text", inputs=_protein),
    Recipe(families=("idefics",), reason="texts attend to pictures by a mask", inputs=_image_mask),
    Recipe(families=("kosmos-2.5",), reason="pictures have places of their own in the text", inputs=_first_tokens),
    Recipe(families=("molmo2",), reason="patches are pooled to tokens", inputs=_crops_and_pools),
    Recipe(
        families=("superpoint", "lightglue", "superglue"),
        reason="cells of eight pixels are scored by 65 classes",
        shrink=fixed(keypoint_decoder_dim=65),
    ),
    Recipe(families=("aria",), reason="queries are told by the number of patches", shrink=_queries_of_patches),
    Recipe(families=("ovis2",), reason="the class's own widths do not fit each other", example=_own_hidden),
    Recipe(families=("colqwen2",), reason="patches are padded a picture", inputs=_patches_a_picture),
    Recipe(
        families=("dots3_note",),
        reason="adapters read the width of their towers",
        shrink=_adapted_width,
    ),
    Recipe(
        families=("blip-2", "instructblip", "instructblipvideo"),
        reason="queries stand for the picture",
        inputs=_queried,
    ),
    Recipe(
        families=("instructblipvideo",),
        reason="frames are pictures",
        adaptation=Adaptation(forms={"pixel_values": "pair"}),
    ),
    Recipe(families=("blip-2",), reason="retrieval reads text by the queries' own model", example=_with_text),
    Recipe(families=("pi0",), reason="several cameras", inputs=_cameras),
    Recipe(
        families=("blip_2_qformer",),
        reason="it queries states of a picture's width",
        adaptation=Adaptation(extra=frozenset({"encoder_hidden_states"}), forms={"encoder_hidden_states": "cross"}),
    ),
)
