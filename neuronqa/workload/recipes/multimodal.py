"""Recipes of families that read text together with images, videos or sound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor

from neuronqa.workload.architectures import Architecture
from neuronqa.workload.inputs import placeholders
from neuronqa.workload.inputs.adaptation import Adaptation
from neuronqa.workload.inputs.scene import Scene
from neuronqa.workload.recipes.recipe import Recipe, Shrunk, defaults
from neuronqa.workload.shrink.widths import sections
from neuronqa.workload.tree import is_count, is_counts

IMAGE_TOKENS: Final = 4


def _rope_sections(default: list[int]) -> Callable[[Shrunk], None]:
    """Rotary sections that the code assumes where the config names none, in proportion to the head dimension."""

    def shrink(shrunk: Shrunk) -> None:
        small = shrunk.small
        ropes = small.get("rope_parameters")
        width = small.get("head_dim") or small["hidden_size"] // small["num_attention_heads"]
        for rope in _ropes(ropes):
            part = rope.get("partial_rotary_factor") or small.get("partial_rotary_factor") or 1.0
            half = int(width * part) // 2
            told = rope.get("mrope_section")
            old = told if is_counts(told) else default
            if sum(old) != half:
                rope["mrope_section"] = sections(old, half)

    return shrink


def _marked(scene: Scene, given: dict[str, Any]) -> None:
    if "moe_mm_token_type_ids" in scene.parameters:
        given["moe_mm_token_type_ids"] = placeholders.kinds(scene, given["input_ids"])


def _even_sections(shrunk: Shrunk) -> None:
    """As many for rows as for columns; time takes the rest."""
    small = shrunk.small
    half = (small.get("head_dim") or small["hidden_size"] // small["num_attention_heads"]) // 2
    space = max(1, half * 22 // 64)
    for rope in _ropes(small.get("rope_parameters")):
        rope["mrope_section"] = [space, space, half - 2 * space]


def _ropes(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, dict):
        return []
    inner = [v for v in value.values() if isinstance(v, dict)]
    return inner or [value]


def _sections(default: list[int], *families: str) -> Recipe:
    reason = "rotary sections are assumed by the code and tied to the head dimension"
    return Recipe(families=families, reason=reason, shrink=_rope_sections(default))


def _few_image_tokens(shrunk: Shrunk) -> None:
    """As many tokens an image as the pooled patch grid has cells; two words are answers."""
    if shrunk.small.get("model_type") == "shieldgemma2":
        shrunk.small.update({"yes_token_index": 3, "no_token_index": 4})
    for fields in (shrunk.small, shrunk.small.get("encoder")):
        if isinstance(fields, dict) and "mm_tokens_per_image" in fields:
            fields["mm_tokens_per_image"] = IMAGE_TOKENS


def _image_tokens(scene: Scene, given: dict[str, Any]) -> None:
    """Training wants to know which tokens are of images."""
    place = scene.read("image_token_id", "image_token_index")
    ids = given.get("input_ids")
    if isinstance(ids, Tensor) and "token_type_ids" in scene.parameters:
        given["token_type_ids"] = (ids == place).long() if place is not None else torch.zeros_like(ids)


def _within_vision(shrunk: Shrunk) -> None:
    """The adapter reads layers that are still there."""
    depth = shrunk.small["vision_config"]["num_hidden_layers"]
    adapter = shrunk.small["adapter_config"]
    adapter["vision_feature_layer"] = [
        -1 if place % 2 == 0 else -2 for place in range(len(adapter["vision_feature_layer"]))
    ]
    assert depth >= len(set(adapter["vision_feature_layer"]))


def _with_towers(*towers: str) -> Callable[[Architecture], dict[str, Any]]:
    """A config with the towers that the class leaves out unless told."""

    def example(architecture: Architecture) -> dict[str, Any]:
        fields = defaults(architecture.model_type)
        return fields | {tower: fields.get(tower) or {} for tower in towers}

    return example


def _merged_widths(shrunk: Shrunk) -> None:
    """The projector's norm is as wide as the merged vision features."""
    vision = shrunk.small.get("vision_config")
    for name in ("mm_hidden_size", "projection_hidden_size"):
        if isinstance(vision, dict) and is_count(shrunk.small.get(name)):
            shrunk.small[name] = vision["hidden_size"]


def _boolean_image_mask(scene: Scene, given: dict[str, Any]) -> None:
    """One flag an image says whether it is real."""
    del scene
    pixels = given.get("pixel_values")
    if isinstance(pixels, Tensor) and "pixel_attention_mask" in given:
        given["pixel_attention_mask"] = torch.ones(pixels.shape[:2], dtype=torch.bool)


def _patches_only(scene: Scene, given: dict[str, Any]) -> None:
    """Flattened patches of all images in one row."""
    side = scene.count("patch_size", default=16)
    count = scene.batch * IMAGE_TOKENS
    given["pixel_values"] = scene.noise("pixel_values", count, 3 * side * side)
    given["input_ids"] = placeholders.insert(scene, given["input_ids"], "image", count)


def _bbox_ties(shrunk: Shrunk) -> None:
    """Widths of box embeddings follow from hidden size and heads."""
    small = shrunk.small
    small.update({"hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 128})
    small["dim_bbox_sinusoid_emb_2d"] = small["hidden_size"] // 4
    small["dim_bbox_sinusoid_emb_1d"] = small["dim_bbox_sinusoid_emb_2d"] // small.get("dim_bbox", 8)
    small["dim_bbox_projection"] = small["hidden_size"] // small["num_attention_heads"]


def _six_coordinates(shrunk: Shrunk) -> None:
    """Six coordinate embeddings side by side are as wide as a token's."""
    small = shrunk.small
    small |= {"hidden_size": 96, "num_attention_heads": 4, "intermediate_size": 192}
    for name in ("coordinate_size", "shape_size"):
        if name in small:
            small[name] = 16


def _align(shrunk: Shrunk) -> None:
    """Images are not projected: the width that coefficients leave of the last stage is the text's projection."""
    vision = shrunk.small["vision_config"]
    wanted = vision["out_channels"][-1] * vision["width_coefficient"]
    width = max(8, int(wanted + 4) // 8 * 8)
    vision["hidden_dim"] = width
    shrunk.small["projection_dim"] = width
    shrunk.small["text_config"]["projection_dim"] = width


def _qwen2_vl_example(architecture: Architecture) -> dict[str, Any]:
    fields = defaults(architecture.model_type)
    fields["vision_config"]["hidden_size"] = fields["text_config"]["hidden_size"]
    return fields


def _image_positions(scene: Scene, given: dict[str, Any]) -> None:
    """The first tokens stand for the image."""
    count = scene.count("latent_query_num", default=8)
    ids = given["input_ids"]
    given["input_ids"] = torch.cat([torch.full((ids.shape[0], count), 5), ids], 1)
    mask = torch.zeros_like(given["input_ids"])
    mask[:, :count] = 1
    given["image_embeds_position_mask"] = mask


def _judged_pictures(scene: Scene, given: dict[str, Any]) -> dict[str, Any] | None:
    """The head hands its labels to the language model, which they do not fit: upstream it has no loss."""
    del given
    return {} if scene.class_name == "ShieldGemma2ForImageClassification" else None


def _decoded_labels(scene: Scene, given: dict[str, Any]) -> dict[str, Any] | None:
    """Labels are of the decoder's tokens."""
    if scene.task.value != "token-classification":
        return None
    return {"labels": scene.integers("labels", 2, *given["decoder_input_ids"].shape)}


RECIPES: Final[tuple[Recipe, ...]] = (
    _sections(
        [16, 24, 24],
        "qwen2_vl_text",
        "qwen2_5_vl_text",
        "paddleocr_vl_text",
        "qwen2_5_omni_text",
        "qwen2_5_omni_talker",
    ),
    _sections(
        [24, 20, 20],
        "qwen3_vl_text",
        "qwen3_vl_moe_text",
        "qwen3_omni_moe_text",
        "qwen3_omni_moe_talker_text",
        "hy_v4_vl_text",
    ),
    _sections([11, 11, 10], "qwen3_5_text", "qwen3_5_moe_text"),
    Recipe(families=("ernie4_5_vl_moe",), reason="experts of pictures read their tokens alone", inputs=_marked),
    Recipe(
        families=("ernie4_5_vl_moe_text",),
        reason="rotary sections of rows and columns are interleaved",
        shrink=_even_sections,
    ),
    _sections([8, 12, 12], "glm4v_text", "glm_image_text", "glm_ocr_text"),
    Recipe(
        families=("idefics2", "idefics3", "smolvlm", "modernvbert", "ultravbert", "colmodernvbert"),
        reason="several images a sample",
        adaptation=Adaptation(forms={"pixel_values": "pair"}),
    ),
    Recipe(
        families=("llava_next", "llava_next_video", "llava_onevision"),
        reason="crops are put together by the images' own sizes",
        adaptation=Adaptation(extra=frozenset({"image_sizes"})),
    ),
    Recipe(
        families=("gemma3", "shieldgemma2"),
        reason="image tokens are tied to the patch grid, and training wants them marked",
        shrink=_few_image_tokens,
        inputs=_image_tokens,
    ),
    Recipe(
        families=("shieldgemma2",),
        reason="its head has no loss of its own, and reads two tokens",
        labels=_judged_pictures,
    ),
    Recipe(families=("t5gemma2",), reason="labels are of the decoder's tokens", labels=_decoded_labels),
    Recipe(
        families=("t5gemma2", "t5gemma2_encoder"),
        reason="image tokens are tied to the patch grid",
        shrink=_few_image_tokens,
    ),
    Recipe(
        families=("video_llama_3", "paddleocr_vl"),
        reason="merge sizes are an input",
        adaptation=Adaptation(extra=frozenset({"image_merge_sizes"})),
    ),
    Recipe(
        families=("kimi_k25", "kimi_k25_vision"),
        reason="patches are square, and the projector's norm is as wide as they",
        shrink=_merged_widths,
        adaptation=Adaptation(forms={"pixel_values": "packed-square"}),
    ),
    Recipe(families=("molmo2",), reason="an adapter reads numbered layers of the vision tower", shrink=_within_vision),
    Recipe(
        families=("gemma4", "gemma4_unified", "embedding_gemma2"),
        reason="the class leaves its towers out unless told",
        example=_with_towers("vision_config", "audio_config"),
    ),
    Recipe(
        families=("granite_docling",),
        reason="a flag an image",
        inputs=_boolean_image_mask,
        adaptation=Adaptation(forms={"pixel_values": "pair"}),
    ),
    Recipe(families=("neomme",), reason="patches in one row, without a grid", inputs=_patches_only),
    Recipe(families=("bros",), reason="box embeddings follow from hidden size and heads", shrink=_bbox_ties),
    Recipe(families=("layoutlmv3", "lilt"), reason="six coordinates share the hidden size", shrink=_six_coordinates),
    Recipe(families=("align",), reason="image features are not projected", shrink=_align),
    Recipe(families=("qwen2_vl",), reason="the vision tower's output width is the text's", example=_qwen2_vl_example),
    Recipe(
        families=("glm4v_moe_text",),
        reason="rotary sections are assumed by the code; the class's heads do not divide its width",
        shrink=_rope_sections([8, 12, 12]),
        completion={"head_dim": 128},
    ),
    Recipe(families=("kosmos-2",), reason="image positions are an input", inputs=_image_positions),
    Recipe(
        families=("qwen2_audio",),
        reason="the mask of the text is read before it is made",
        adaptation=Adaptation(extra=frozenset({"attention_mask"}), placeholders={"audio": 2}),
    ),
)
