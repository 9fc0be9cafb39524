"""Values that every checkpoint of a family carries and its config class leaves open: what the audit's examples need."""

from __future__ import annotations

from typing import Any, Final

from neuronqa.workload.architectures import Architecture
from neuronqa.workload.recipes.recipe import Recipe, defaults

_INTRACLASS: Final = {
    "reduce_channel": [1, 1, 0],
    "return_channel": [1, 1, 0],
    "vertical_long_to_small_conv_longratio": [[7, 1], [1, 1], [3, 0]],
    "vertical_long_to_small_conv_midratio": [[5, 1], [1, 1], [2, 0]],
    "vertical_long_to_small_conv_shortratio": [[3, 1], [1, 1], [1, 0]],
    "horizontal_small_to_long_conv_longratio": [[1, 7], [1, 1], [0, 3]],
    "horizontal_small_to_long_conv_midratio": [[1, 5], [1, 1], [0, 2]],
    "horizontal_small_to_long_conv_shortratio": [[1, 3], [1, 1], [0, 1]],
    "symmetric_conv_long_longratio": [[7, 7], [1, 1], [3, 3]],
    "symmetric_conv_long_midratio": [[5, 5], [1, 1], [2, 2]],
    "symmetric_conv_long_shortratio": [[3, 3], [1, 1], [1, 1]],
}


_HEADS: Final[dict[str, dict[str, Any]]] = {
    "Segmentation": {"upsample_out_channels": [64, 64], "conv_out_channels": [64, 64]},
    "Pose": {"upsample_out_channels": [64, 64], "conv_out_channels": [64, 64]},
    "Normal": {"upsample_out_channels": [64, 64], "conv_out_channels": [64, 32]},
    "Pointmap": {
        "upsample_out_channels": [64, 64],
        "conv_out_channels": [64, 32],
        "scale_conv_out_channels": [64],
        "scale_conv_kernel_sizes": [3],
        "scale_final_input_size": 256,
        "scale_final_hidden_sizes": [64, 64],
    },
    "Matting": {"upsample_out_channels": [64, 64], "conv_out_channels": [64, 32]},
}


def _sapiens(architecture: Architecture) -> dict[str, Any]:
    head = next((head for word, head in _HEADS.items() if word in architecture.class_name), None)
    fields = defaults(architecture.model_type)
    return fields if head is None else fields | {"head_config": {"model_type": "sapiens2_head", **head}}


def _dbrx(architecture: Architecture) -> dict[str, Any]:
    fields = defaults(architecture.model_type)
    fields["attn_config"] |= {"rope_theta": 500000.0, "clip_qkv": 8.0}
    fields["ffn_config"] |= {"moe_num_experts": 16, "moe_top_k": 4}
    return fields


RECIPES: Final[tuple[Recipe, ...]] = (
    Recipe(families=("dbrx",), reason="the class leaves the base of its rotation open", example=_dbrx),
    Recipe(families=("sapiens2",), reason="the class leaves its heads open", example=_sapiens),
    Recipe(
        families=("deepseek_ocr2_text",),
        reason="the class leaves open which layers have experts",
        completion={"mlp_layer_types": ["dense"] + ["sparse"] * 11, "num_hidden_layers": 12},
    ),
    Recipe(
        families=("diffusion_gemma_text",),
        reason="the class leaves its experts open",
        completion={"num_experts": 128, "top_k_experts": 8, "moe_intermediate_size": 704},
    ),
    Recipe(
        families=("qwen4_exp_text",),
        reason="the class leaves its indexer open",
        completion={
            "indexer_n_heads": 16,
            "indexer_kv_heads": 1,
            "indexer_head_dim": 256,
            "indexer_budget": 2048,
            "indexer_compress_ratio": 4,
        },
    ),
    Recipe(
        families=("lw_detr",),
        reason="the class leaves the scales of its projector open",
        completion={"projector_scale_factors": [1.0]},
    ),
    Recipe(
        families=("hiera",),
        reason="the class leaves the decoder of its pretraining open",
        completion={"decoder_hidden_size": 512, "decoder_depth": 8, "decoder_num_heads": 16},
    ),
    Recipe(
        families=("pp_ocrv5_server_det", "pp_ocrv6_medium_det"),
        reason="the class leaves the kernels of its neck open",
        completion={
            "intraclass_block_config": _INTRACLASS,
            "scale_factor_list": [1, 2, 4, 8],
            "kernel_list": [3, 2, 2],
        },
    ),
    Recipe(
        families=("moonshine_streaming",),
        reason="the class leaves key-value heads open",
        completion={"num_key_value_heads": 8},
    ),
    Recipe(
        families=("t5gemma2_text",),
        reason="only the composed config names the dropout of its text encoder",
        completion={"dropout_rate": 0.0},
    ),
    Recipe(
        families=("qwen3_omni_moe_talker_text",),
        reason="the class leaves the width of its shared expert open",
        completion={"shared_expert_intermediate_size": 768},
    ),
)
