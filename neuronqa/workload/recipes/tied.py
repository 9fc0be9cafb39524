"""Recipes of families whose parts are tied in ways that no field's name tells."""

from __future__ import annotations

from typing import Any, Final

import torch

from neuronqa.workload.architectures import Architecture
from neuronqa.workload.inputs import placeholders
from neuronqa.workload.inputs.adaptation import Adaptation
from neuronqa.workload.inputs.scene import Scene
from neuronqa.workload.recipes.recipe import Recipe, Shrunk, defaults, fixed, kept
from neuronqa.workload.tree import is_count, is_counts

ROTARY: Final = 32
"""clvp rotates at least this much of a head."""
CODEC_FRAMES: Final = 10
CONTEXT: Final = 8
SOUND_FRAMES: Final = 16
"""Two tokens of sound: one alone has nothing to attend to."""
GRID: Final = 4
UNMASKED: Final = -100
FILM_FRAMES: Final = 2
QUERY_HEAD: Final = 64
SHIFTS: Final = 4


def _wide_heads(shrunk: Shrunk) -> None:
    """Heads as wide as the part of them that is rotated."""
    small = shrunk.small
    width = ROTARY * small["num_attention_heads"]
    small |= {"hidden_size": width, "projection_dim": width, "intermediate_size": 2 * width}


def _clvp(shrunk: Shrunk) -> None:
    shrunk.small["projection_dim"] = shrunk.small["text_config"]["projection_dim"]


def _stages(shrunk: Shrunk) -> None:
    """The encoder reads all of the backbone's stages but the first, which the masks read."""
    small = shrunk.small
    stages = small["backbone_config"].get("stage_out_channels")
    if is_counts(stages) and len(stages) == 1 + len(small["encoder_in_channels"]):
        small["encoder_in_channels"] = stages[1:]
        if "x4_feat_dim" in small:
            small["x4_feat_dim"] = stages[0]


def _few_windows(shrunk: Shrunk) -> None:
    """Windows of several patches: one alone has nothing to attend to."""
    shrunk.small.update({"num_windows": 4, "num_windows_side": 2})


def _sum_of_codes(shrunk: Shrunk) -> None:
    """A code is a sound's part beside a meaning's."""
    small = shrunk.small
    small["codebook_dim"] = sum(small[f"{part}_model_config"]["hidden_size"] for part in ("acoustic", "semantic"))


def _two_encoders(shrunk: Shrunk) -> None:
    """What the first encoder ends in, the second reads beside its own queries."""
    small = shrunk.small
    small["sam_config"]["downsample_channels"][-1] = small["encoder_config"]["hidden_size"]


def _same_picture(shrunk: Shrunk) -> None:
    """The tracker's picture is its backbone's: feature sizes follow from it."""
    side = shrunk.small["vision_config"]["backbone_config"]["image_size"]
    if is_count(side):
        shrunk.small["image_size"] = side


def _all_shared(shrunk: Shrunk) -> None:
    text = shrunk.small["text_config"]
    text["num_kv_shared_layers"] = text["num_hidden_layers"]


def _assistant(architecture: Architecture) -> dict[str, Any]:
    """An assistant has no keys of its own, and none of the parts that its class refuses."""
    fields = defaults("gemma4_text")
    text = fields | {"hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0}
    text["num_kv_shared_layers"] = text["num_hidden_layers"]
    return {"model_type": architecture.model_type, "text_config": text}


def _lent_keys(scene: Scene, given: dict[str, Any]) -> None:
    """The model that is assisted lends its states, and keys and values of the last layer of each kind."""
    given.pop("input_ids", None)
    given["output_hidden_states"] = True  # without it, only the last token's states would be computed
    width = 2 * scene.count("backbone_hidden_size", default=1536)
    given["inputs_embeds"] = scene.noise("inputs_embeds", scene.batch, scene.tokens, width)
    given["shared_kv_states"] = {
        kind: tuple(scene.noise(f"{kind}_{part}", scene.batch, *shape) for part in ("keys", "values"))
        for kind, shape in _shapes_of_keys(scene).items()
    }


def _shapes_of_keys(scene: Scene) -> dict[str, tuple[int, int, int]]:
    """Heads, tokens and head dimension by kind of layer, which may have its own."""
    found = {}
    for part in scene.model.modules():
        kind, size, groups = (getattr(part, name, None) for name in ("layer_type", "head_dim", "num_key_value_groups"))
        if isinstance(kind, str) and is_count(size) and is_count(groups):
            heads = scene.count("num_attention_heads", of=scene.text, default=1) // groups
            found[kind] = (heads, scene.tokens, size)
    return found


def _context(scene: Scene, given: dict[str, Any]) -> None:
    """States of several layers of the model that is assisted, side by side."""
    layers = scene.read("target_layer_ids") or [0]
    given["noise_embeds"] = scene.noise("noise_embeds", scene.batch, scene.tokens, scene.hidden)
    states = scene.noise("context", scene.batch, CONTEXT, len(layers) * scene.hidden)
    given["context_hidden_states"] = states


def _wave_and_features(scene: Scene, given: dict[str, Any]) -> None:
    """As many frames of features as the codec makes of the wave."""
    hop = int(scene.config.hop_length)
    width = scene.count("feature_projection_input_dim", of=scene.read("semantic_model_config"), default=160)
    given["input_values"] = scene.noise("input_values", scene.batch, 1, CODEC_FRAMES * hop)
    given["input_features"] = scene.noise("input_features", scene.batch, CODEC_FRAMES, width)
    given["input_features_mask"] = torch.ones(scene.batch, CODEC_FRAMES, dtype=torch.long)


def _whole_clips(scene: Scene, given: dict[str, Any]) -> None:
    """Nothing of a clip is padding."""
    if "input_values" in given:
        given["padding_mask"] = torch.ones(scene.batch, given["input_values"].shape[-1], dtype=torch.long)


def _chunks(scene: Scene, given: dict[str, Any]) -> None:
    """How much of the wave each chunk stands for; one placeholder a token of it."""
    if "input_features" not in given:
        return
    hop, a_token = (int(getattr(scene.audio, name)) for name in ("hop_length", "samples_per_token"))
    given["input_features"] = scene.noise("sound", scene.batch, given["input_features"].shape[1], SOUND_FRAMES)
    length = SOUND_FRAMES * hop
    given["chunk_sample_lengths"] = torch.full((scene.batch,), length)
    if "input_ids" in given:
        count = scene.batch * -(-length // a_token)
        given["input_ids"] = placeholders.insert(scene, given["input_ids"], "audio", count)


def _masked_pairs(scene: Scene, given: dict[str, Any]) -> dict[str, Any] | None:
    """Half of the words and of the patches are to be guessed; one pair belongs together, one does not."""
    if scene.class_name != "FlavaForPreTraining":
        return None
    ids, pixels = given["input_ids"], given["pixel_values"]
    patch = scene.count("patch_size", of=scene.vision, default=16)
    patches = (pixels.shape[-1] // patch) * (pixels.shape[-2] // patch)
    asked = torch.arange(patches).repeat(scene.batch, 1) % 2 == 0
    codes = scene.integers("mim_labels", scene.count("vocab_size", of=scene.vision, default=8192), *asked.shape)
    words = torch.where(torch.arange(ids.shape[1]) % 2 == 0, ids, torch.full_like(ids, UNMASKED))
    return {
        "input_ids_masked": torch.where(words == UNMASKED, ids, torch.full_like(ids, 3)),
        "bool_masked_pos": asked,
        "mim_labels": torch.where(asked, codes, torch.full_like(codes, UNMASKED)),
        "mlm_labels": words,
        "itm_labels": torch.tensor([1, 0]),
        "return_loss": True,
    }


def _patch_rows(scene: Scene, given: dict[str, Any]) -> None:
    """Flat patches of all pictures in one row, with the grid of each."""
    if "pixel_values" not in given:
        return
    patch = scene.count("patch_size", of=scene.vision, default=16)
    count = scene.batch * GRID**2
    given["pixel_values"] = scene.noise("pixel_values", count, 3 * patch * patch)
    given["image_grid_hw"] = torch.tensor([[GRID, GRID]] * scene.batch)


def _one_film(scene: Scene, given: dict[str, Any]) -> None:
    del scene
    given.update({name: value[:1] for name, value in given.items() if isinstance(value, torch.Tensor)})


def _read_by_layers(shrunk: Shrunk) -> None:
    """Two layers of the tower and four shifts of its grid feed six layers of the text."""
    small = shrunk.small
    small["vision_config"] |= {"hidden_size": QUERY_HEAD, "num_attention_heads": 2, "intermediate_size": 2 * QUERY_HEAD}
    side = small["vision_config"]["image_size"] // small["vision_config"]["patch_size"]
    small["text_config"]["num_hidden_layers"] = 2 + SHIFTS
    small |= {
        "downsample_rate": f"{side // 2}/{side}",
        "deepstack_layer_map": [[-2, 0], [-1, 1]],
        "spatial_target_layers": list(range(2, 2 + SHIFTS)),
    }


def _perceiving(architecture: Architecture) -> dict[str, Any]:
    fields = defaults(architecture.model_type)
    fields["vision_config"]["architecture"] = "vit_pe_core_large_patch14_336"
    fields["vision_config"]["model_args"] = {
        "embed_dim": 1024,
        "img_size": [448, 448],
        "depth": 23,
        "global_pool": "",
        "use_post_transformer_norm": False,
        "init_values": 0.1,
        "ref_feat_shape": [32, 32],
    }
    return fields


def _perceived(shrunk: Shrunk) -> None:
    """Arguments of the tower's constructor are its config."""
    vision = shrunk.small["vision_config"]
    told = vision.get("model_args")
    if isinstance(told, dict) and "embed_dim" in told:
        cut = {"embed_dim": QUERY_HEAD, "img_size": [56, 56], "depth": 2, "ref_feat_shape": [GRID, GRID]}
        vision["model_args"] = {**told, **cut, "num_heads": 2}


def _every_stage(architecture: Architecture) -> dict[str, Any]:
    """The neck reads all stages of the backbone, each half as high and as wide as the one before."""
    fields = defaults(architecture.model_type)
    backbone = fields["backbone_config"]
    blocks = [[list(block) for block in stage] for stage in backbone["block_configs"]]
    for stage in blocks[1:]:
        stage[0][3] = 2
    backbone |= {"block_configs": blocks, "out_indices": list(range(1, len(blocks) + 1))}
    backbone["out_features"] = [f"stage{index}" for index in backbone["out_indices"]]
    if "layer_list_out_channels" in fields:
        fields["layer_list_out_channels"] = [stage[-1][2] for stage in blocks]
    return fields


def _every_bridge(architecture: Architecture) -> dict[str, Any]:
    """The head reads all bridges."""
    fields = defaults(architecture.model_type)
    backbone = fields.get("backbone_config", fields)
    backbone["out_indices"] = list(range(1, len(backbone["stage_configs"]) + 1))
    backbone["out_features"] = [f"stage{index}" for index in backbone["out_indices"]]
    return fields


RECIPES: Final[tuple[Recipe, ...]] = (
    Recipe(families=("clvp_encoder",), reason="at least 32 of a head are rotated", version=2, shrink=_wide_heads),
    Recipe(families=("clvp",), reason="texts and sounds meet in one width", version=2, shrink=_clvp),
    Recipe(
        families=("lw_detr",),
        reason="the class counts feature levels before it knows them",
        version=2,
        completion={"num_feature_levels": 1, "projector_in_channels": [256], "projector_out_channels": 256},
    ),
    Recipe(families=("lw_detr_vit",), reason="a picture has more patches than windows", version=2, shrink=_few_windows),
    Recipe(
        families=("deepseek_ocr2_text",),
        reason="the class leaves open how many experts a token has",
        version=2,
        completion={"num_experts_per_tok": 6},
    ),
    Recipe(
        families=("pp_doclayout_v2", "pp_doclayout_v3"), reason="stages are read as they are", version=2, shrink=_stages
    ),
    Recipe(
        families=("pp_doclayout_v2",),
        reason="the class leaves open what it reads in which order",
        version=2,
        completion={"class_thresholds": [0.5, 0.5], "class_order": [0, 1]},
    ),
    Recipe(families=("xcodec",), reason="a code is two parts side by side", version=2, shrink=_sum_of_codes),
    Recipe(families=("xcodec2",), reason="wave and features are of one length", version=2, inputs=_wave_and_features),
    Recipe(
        families=("deepseek_ocr2_encoder",),
        reason="the class's own width is not what the encoder before it ends in",
        version=2,
        completion={
            "hidden_size": 896,
            "intermediate_size": 4864,
            "num_attention_heads": 14,
            "num_key_value_heads": 2,
        },
    ),
    Recipe(families=("deepseek_ocr2_vision",), reason="one encoder reads the other", version=2, shrink=_two_encoders),
    Recipe(
        families=("sam3_tracker_video",),
        reason="feature sizes follow from the picture",
        version=2,
        shrink=_same_picture,
    ),
    Recipe(
        families=("gemma4_assistant", "gemma4_unified_assistant"),
        reason="keys and values are lent by the model that is assisted",
        version=2,
        example=_assistant,
        shrink=_all_shared,
        inputs=_lent_keys,
    ),
    Recipe(
        families=("muse_glimmer_assistant",), reason="states of several layers are read", version=2, inputs=_context
    ),
    Recipe(
        families=("apertus1p5",),
        reason="pictures and clips are coded at their own size",
        version=2,
        adaptation=Adaptation(extra=frozenset({"image_sizes"})),
        inputs=_whole_clips,
    ),
    Recipe(families=("dots3_note",), reason="chunks of sound have lengths", version=2, inputs=_chunks),
    Recipe(families=("flava",), reason="pretraining guesses what is masked", version=2, labels=_masked_pairs),
    Recipe(families=("nemotron_h_omni",), reason="patches come flat with their grid", version=2, inputs=_patch_rows),
    Recipe(
        families=("pp_ocrv6_small_det", "pp_ocrv6_medium_det"),
        reason="the neck reads all stages of the backbone",
        version=2,
        example=_every_stage,
    ),
    Recipe(
        families=("pp_ocrv6_small_det",),
        reason="the neck reads stages as wide as they are",
        version=2,
        shrink=kept("layer_list_out_channels", "neck_out_channels"),
    ),
    Recipe(families=("uvdoc", "uvdoc_backbone"), reason="the head reads all bridges", version=2, example=_every_bridge),
    Recipe(
        families=("tvp",),
        reason="a frame of prompts surrounds the picture; upstream views one row of columns as that of all films",
        version=2,
        shrink=fixed(visual_prompt_size=8, num_frames=FILM_FRAMES),
        inputs=_one_film,
    ),
    Recipe(
        families=("granite4_vision",),
        reason="the class leaves open which layers read what of the picture; queries have heads of 64",
        version=2,
        completion={"downsample_rate": "4/8", "deepstack_layer_map": [[-5, 9], [-1, 0]]},
        shrink=_read_by_layers,
    ),
    Recipe(
        families=("perception_lm",),
        reason="the class leaves its tower open",
        version=2,
        example=_perceiving,
        shrink=_perceived,
    ),
)
