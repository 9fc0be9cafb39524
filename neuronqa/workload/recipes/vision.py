"""Recipes of vision families."""

from __future__ import annotations

from typing import Any, Final

from neuronqa.workload.architectures import Architecture
from neuronqa.workload.inputs.adaptation import Adaptation
from neuronqa.workload.inputs.scene import Scene
from neuronqa.workload.recipes.recipe import Recipe, Shrunk, defaults, fixed, kept
from neuronqa.workload.tree import is_count

_TIMM_SMALLER: Final = {
    "resnet50": "resnet26",
    "resnet101": "resnet26",
    "resnet152": "resnet26",
    "resnet34": "resnet18",
    "tf_efficientnet_b7": "tf_efficientnet_b0",
}
"""Siblings of one design with fewer blocks: timm's models have no config to shrink."""
_TIMM_CUTS: Final[dict[str, dict[str, Any]]] = {
    "vit_pe": {"depth": 2, "img_size": 56},
    "fastvit_mci": {"layers": [1, 1, 1, 1, 1], "embed_dims": [16, 32, 64, 128, 256]},
    "mobilenetv5": {"channel_multiplier": 0.0625, "msfa_output_resolution": 4},
}
"""What shortens designs that have no smaller sibling."""
WIDTH: Final = 0.1
TOP: Final = 128
GROUPS: Final = 8
SIDE: Final = 64
STRIDE: Final = 4
RESIDUAL_STRIDE: Final = 2
"""Of the first map that a backbone gives; a residual network gives its stem too."""
START: Final = 101
END: Final = 102
STOP: Final = 1012


def _sibling(shrunk: Shrunk) -> None:
    name = shrunk.small.get("backbone")
    shrunk.small["backbone"] = _TIMM_SMALLER.get(str(name), name)


def _shallow(shrunk: Shrunk) -> None:
    """Arguments of timm's constructors cut the depth; the widths that features have are read by others."""
    name, told = str(shrunk.small.get("architecture")), shrunk.small.get("model_args") or {}
    cut = next((cut for start, cut in _TIMM_CUTS.items() if name.startswith(start)), {})
    if cut:
        shrunk.small["model_args"] = {**told, **cut}


def _shallow_within(shrunk: Shrunk) -> None:
    _shallow(shrunk)
    kept("hidden_size")(shrunk)


def _twice_the_last_stage(shrunk: Shrunk) -> None:
    vision = shrunk.small["vision_config"]
    stages = (vision.get("model_args") or {}).get("embed_dims")
    if stages:
        vision["hidden_size"] = 2 * stages[-1]


def _size_of_backbone(shrunk: Shrunk) -> None:
    backbone = shrunk.small.get("backbone_config")
    if isinstance(backbone, dict) and "img_size" in backbone:
        backbone["img_size"] = shrunk.small["image_size"]
    kept("encoder_in_channels")(shrunk)
    small = shrunk.small
    small["class_embed_dim"] = small["text_projection_out_dim"] = 2 * small["decoder_hidden_dim"]


def _efficient(shrunk: Shrunk) -> None:
    """Widths and depths are coefficients here, and the top follows from them."""
    full = shrunk.full
    for name in ("in_channels", "out_channels", "kernel_sizes", "strides", "expand_ratios", "depthwise_padding"):
        if name in full:
            shrunk.small[name] = full[name]
    shrunk.small.update({"width_coefficient": WIDTH, "depth_coefficient": WIDTH, "hidden_dim": TOP})


def _windows(shrunk: Shrunk) -> None:
    """Two blocks a stage, one of them global; the neck reads the stages' widths, last first."""
    small = shrunk.small
    small["blocks_per_stage"] = [1, 1, 2, 1]
    small["global_attention_blocks"] = [3]
    small["window_size_per_stage"] = [4, 4, 2, 2]


def _neck(shrunk: Shrunk) -> None:
    backbone = shrunk.small.get("backbone_config")
    if isinstance(backbone, dict) and "embed_dim_per_stage" in backbone:
        shrunk.small["backbone_channel_list"] = list(reversed(backbone["embed_dim_per_stage"]))
        shrunk.small["backbone_feature_sizes"] = [[16, 16], [8, 8], [4, 4]]


def _one_width(shrunk: Shrunk) -> None:
    """Features, prompts and masks meet in one width."""
    small = shrunk.small
    vision, prompt = small["vision_config"], small["prompt_encoder_config"]
    vision["fpn_hidden_size"] = prompt["hidden_size"] = small["mask_decoder_config"]["hidden_size"]
    prompt |= {"image_size": SIDE, "patch_size": SIDE // vision["backbone_feature_sizes"][-1][0]}


def _sides(side: int) -> Any:
    def shrink(shrunk: Shrunk) -> None:
        shrunk.small["image_size"] = side

    return shrink


def _embedding_grid(shrunk: Shrunk) -> None:
    """The prompt encoder knows the grid of the image encoder."""
    small = shrunk.small
    if is_count(small.get("image_size")) and is_count(small.get("patch_size")):
        small["image_embedding_size"] = small["image_size"] // small["patch_size"]


def _sam(shrunk: Shrunk) -> None:
    vision, prompt = shrunk.small["vision_config"], shrunk.small["prompt_encoder_config"]
    for name in ("image_size", "patch_size"):
        prompt[name] = vision[name]
    prompt["image_embedding_size"] = vision["image_size"] // vision["patch_size"]
    width = shrunk.small["mask_decoder_config"]["hidden_size"]
    vision["output_channels"] = prompt["hidden_size"] = width
    vision["num_pos_feats"] = width // 2


def _four_taps(architecture: Architecture) -> dict[str, Any]:
    fields = defaults(architecture.model_type)
    if "Segmentation" not in architecture.class_name:
        return fields
    return {k: v for k, v in fields.items() if k not in ("out_features", "stage_names")} | {
        "out_indices": [3, 5, 7, 11]
    }


def _timm_example(architecture: Architecture) -> dict[str, Any]:
    return defaults(architecture.model_type) | {"backbone": "resnet18", "out_indices": [1, 2, 3, 4]}


def _upper(shrunk: Shrunk) -> None:
    """Layers are read from the merge on."""
    small = shrunk.small
    small["merge_index"] = 0
    small["num_hidden_layers"] = 4
    small["intermediate_hidden_state_indices"] = [0, 1, 2, 3]


def _deepening(shrunk: Shrunk) -> None:
    """Each stage looks up its own number among its blocks."""
    shrunk.small["depth"] = [1, 2, 3][: len(shrunk.small["depth"])]


def _two_names(scene: Scene, given: dict[str, Any]) -> None:
    """Names end with full stops, which the code knows by their number."""
    del scene
    ids = given["input_ids"]
    ids[:, 0], ids[:, -1] = START, END
    for place in (5, 10):
        ids[:, place] = STOP


def _names_kept(shrunk: Shrunk) -> None:
    text = shrunk.small.get("text_config")
    if isinstance(text, dict):
        text["vocab_size"] = STOP + 1


def _halves(shrunk: Shrunk) -> None:
    """Prompt and picture stand above each other."""
    side = min(shrunk.small["image_size"])
    shrunk.small["image_size"] = [2 * side, side]
    _upper(shrunk)


def _prompted(scene: Scene, given: dict[str, Any]) -> None:
    side = min(scene.read("image_size"))
    for name in ("pixel_values", "prompt_pixel_values", "prompt_masks", "labels"):
        if name in given or (name == "labels" and name in scene.parameters):
            given[name] = scene.noise(name, scene.batch, 3, side, side)


def _strides(shrunk: Shrunk) -> None:
    """Channels as the backbone has them; each of three feature maps has half the side of the one before."""
    shrunk.small["backbone_channel_list"] = shrunk.full["backbone_channel_list"]
    residual = str(shrunk.small["backbone_config"].get("architecture")).startswith("resnet")
    first = RESIDUAL_STRIDE if residual else STRIDE
    shrunk.small["backbone_feature_sizes"] = [[SIDE // (first * by)] * 2 for by in (1, 2, 4)]


def _levels(shrunk: Shrunk) -> None:
    """Fewer queries than patches; projected feature levels are as wide as the decoder."""
    small = shrunk.small
    small["num_queries"] = 8
    small["projector_in_channels"] = [small["d_model"]] * len(small["projector_scale_factors"])
    small["projector_out_channels"] = small["d_model"]


def _backbone_width(shrunk: Shrunk) -> None:
    """The head reads features of the backbone's width."""
    shrunk.small["hidden_size"] = shrunk.small["backbone_config"]["hidden_size"]


_FOLLOWING: Final = (
    "stage_in_channels",
    "stage_block_stride",
    "stage_block_out_channels",
    "stage_block_in_channels",
    "fine_fusion_dims",
    "intermediate_size",
    "num_key_value_heads",
)
"""Computed by the class from the stages, unless they are told."""


def _matched_stages(shrunk: Shrunk) -> None:
    """Widths of the stages double; the last is the width that is attended in."""
    shrunk.small.update({"out_features": [16, 16, 32, 64], "hidden_size": 64, "num_attention_heads": 8})
    for name in _FOLLOWING:
        shrunk.small.pop(name, None)


def _with_depth(scene: Scene, given: dict[str, Any]) -> None:
    """A coarse depth prompts the fine one."""
    given["prompt_depth"] = scene.uniform("prompt_depth", scene.batch, 1, *given["pixel_values"].shape[-2:])


def _pyramid(shrunk: Shrunk) -> None:
    """The sizes of feature maps are told, not found."""
    small = shrunk.small
    backbone = small.get("backbone_config")
    if isinstance(backbone, dict) and is_count(backbone.get("image_size")) and "backbone_feature_sizes" in small:
        side = backbone["image_size"] // backbone["patch_size"]
        small["backbone_feature_sizes"] = [[4 * side] * 2, [2 * side] * 2, [side] * 2]


RECIPES: Final[tuple[Recipe, ...]] = (
    Recipe(
        families=("timm_backbone",),
        reason="timm's models are named, not configured",
        shrink=_sibling,
        example=_timm_example,
    ),
    Recipe(families=("timm_wrapper",), reason="timm's models are named, not configured", shrink=_shallow),
    Recipe(
        families=("gemma3n_vision",),
        reason="timm's models are named, not configured; its features have one width whatever is within",
        version=2,
        shrink=_shallow_within,
    ),
    Recipe(
        families=("gemma3n",),
        reason="there are as many tokens as features of a picture; sounds are filled up",
        version=2,
        shrink=fixed(vision_soft_tokens_per_image=16, audio_soft_tokens_per_image=16),
    ),
    Recipe(
        families=("fast_vlm",),
        reason="features are twice as wide as the last stage; smaller pictures leave one alone",
        version=2,
        shrink=_twice_the_last_stage,
        adaptation=Adaptation(forms={"pixel_values": "double"}),
    ),
    Recipe(
        families=("omdet-turbo",),
        reason="the backbone is built for one size of picture; names are wider than what reads them, or upstream fails",
        version=2,
        shrink=_size_of_backbone,
    ),
    Recipe(
        families=("efficientnet", "align_vision_model"), reason="widths and depths are coefficients", shrink=_efficient
    ),
    Recipe(
        families=("sam2_hiera_det_model",),
        reason="windows and global blocks are numbered over all stages",
        shrink=_windows,
    ),
    Recipe(families=("sam2_vision_model",), reason="the neck reads the stages' widths", shrink=_neck),
    Recipe(
        families=("mobilevit", "mobilevitv2"),
        reason="attention needs more than one patch at the deepest stage",
        shrink=_sides(128),
    ),
    Recipe(
        families=("sam", "sam_hq"),
        reason="prompt encoder and mask decoder know the image encoder's shapes",
        adaptation=Adaptation(extra=frozenset({"input_points", "input_labels"})),
        shrink=_sam,
    ),
    Recipe(families=("beit", "data2vec-vision"), reason="segmentation reads four layers", example=_four_taps),
    Recipe(
        families=("grounding-dino", "mm-grounding-dino"),
        reason="things are told apart by their names in the text",
        shrink=_names_kept,
        inputs=_two_names,
    ),
    Recipe(
        families=("groupvit_vision_model",),
        reason="groups are tokens, not widths",
        shrink=kept("num_output_groups", "num_group_tokens"),
    ),
    Recipe(families=("cvt",), reason="a stage has more blocks than its number", shrink=_deepening),
    Recipe(
        families=("seggpt",),
        reason="layers are read from the merge on, and a prompt stands above the picture",
        shrink=_halves,
        inputs=_prompted,
    ),
    Recipe(families=("vitmatte",), reason="the head reads features of the backbone's width", shrink=_backbone_width),
    Recipe(
        families=("lw_detr",),
        reason="fewer queries than patches, feature levels of one width",
        version=2,
        shrink=_levels,
    ),
    Recipe(
        families=("edgetam_vision_model",),
        reason="the class's own channels do not fit its backbone",
        completion={"backbone_channel_list": [1024, 512, 256, 64]},
        shrink=_strides,
    ),
    Recipe(families=("prompt_depth_anything",), reason="a coarse depth is an input", inputs=_with_depth),
    Recipe(families=("sam3_vision_model",), reason="the sizes of feature maps are told", shrink=_pyramid),
    Recipe(
        families=("pp_lcnet_v4", "pp_lcnet_v3"),
        reason="blocks name their channels one by one",
        version=2,
        shrink=kept("stem_channels", "stage_out_channels"),
    ),
    Recipe(
        families=("detr",),
        reason="attention maps of all heads are split into groups of eight beside the features",
        version=2,
        shrink=fixed(encoder_attention_heads=GROUPS, decoder_attention_heads=GROUPS, num_attention_heads=GROUPS),
    ),
    Recipe(
        families=("efficientloftr",),
        reason="features are as wide as the last stage",
        version=2,
        shrink=_matched_stages,
    ),
    Recipe(families=("edgetam",), reason="features, prompts and masks meet in one width", version=2, shrink=_one_width),
    Recipe(families=("levit",), reason="the deepest stage needs more than one token", shrink=_sides(128)),
    Recipe(
        families=("superglue", "lightglue", "efficientloftr"),
        reason="pairs of images are matched",
        adaptation=Adaptation(forms={"pixel_values": "pair"}),
    ),
)
