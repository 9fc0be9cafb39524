"""What a config field means, told from its name: one ordered table for the shrinker and for the keys.

transformers has some 2,300 field names for a few dozen ideas. A name that no row knows is STRUCTURE: it is kept as it
is when shrinking and counts in full in a key, so a missing row can only split keys too finely, never merge them.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import lru_cache
from typing import Final


class Meaning(Enum):
    """Ideas behind config fields."""

    IDENTITY = auto()
    """Names, labels, versions: no tensor depends on them."""
    TOKEN = auto()
    """Ids of special tokens."""
    VOCABULARY = auto()
    """Sizes of vocabularies."""
    NOISE = auto()
    """Dropout, stochastic depth, masking and jitter of training."""
    TRAINING = auto()
    """Initialisation, loss weights, matching costs."""
    OUTPUT = auto()
    """What is returned or cached."""
    POSITIONS = auto()
    """Longest sequences: sizes of position tables."""
    EXPERTS = auto()
    TOP_K = auto()
    EXPERT_GROUPS = auto()
    DEPTH = auto()
    """Numbers of layers."""
    PERIOD = auto()
    """Every how many layers a special layer comes."""
    HEADS = auto()
    KV_HEADS = auto()
    HEAD_DIM = auto()
    IMAGE_SIZE = auto()
    GEOMETRY = auto()
    """Patches, kernels, strides, windows: they decide kernels and are kept."""
    CHANNELS = auto()
    """Channels of raw inputs: colours, mel bins. Given by the data, so they are kept."""
    QUERIES = auto()
    """Numbers of learned queries and latents."""
    WIDTH = auto()
    """Sizes of hidden spaces."""
    SCALAR = auto()
    """Numbers that enter arithmetic but no shape and no branch."""
    STRUCTURE = auto()
    """Everything else."""


_TABLE: Final[tuple[tuple[Meaning, str, str], ...]] = (
    (
        Meaning.IDENTITY,
        (
            r"_name_or_path|transformers_version|architectures|auto_map|id2label|label2id|num_labels|dtype|torch_dtype"
            r"|tokenizer_class|processor_class|finetuning_task|task_specific_params|_commit_hash|model_type|label_names"
            r"|langs|languages|lang2id|id2lang|problem_type_names|default_language|archi?tecture|name_or_path"
        ),
        r"",
    ),
    (
        Meaning.TOKEN,
        (
            r"\w*(_token_ids?|_token_index|_token_indices|_token_idx|_tok_ids?|_token_id_list|suppress_tokens)"
            r"|(bos|eos|pad|sep|cls|mask|unk|im_start|im_end|im_newline|image_start|image_end|slice_start|slice_end|newline"
            r"|tag_pad|subs_pad|audio_stream_bos|audio_stream_eos|im_patch|image_patch)_(id|index|idx)"
            r"|\w*_(start|end)_token|image_token|lang_id|no_aggregation_label_index"
        ),
        r"use_\w+|cls_token|mask_token",
    ),
    (
        Meaning.VOCABULARY,
        (
            r"\w+_vocab_size|vocab_size|vocab_size_or_config_json_file|n_vocab|text_vocab|vocabulary_size"
            r"|\w*vocab_size_per_layer_input"
        ),
        r"type_vocab_size|token_type_vocab_size|task_type_vocab_size|modality_type_vocab_size",
    ),
    (
        Meaning.NOISE,
        (
            r"\w*dropout\w*|\w*drop_?path\w*|\w*droppath\w*|\w*layerdrop|\w*_pdrop|\w*drop_rate|drop_connect_rate"
            r"|dropout_p|gp_dropout_value|mask_time_\w+|mask_feature_(prob|length|min_masks)|apply_spec_augment"
            r"|router_jitter_noise|moe_jitter_eps|label_noise_ratio|box_noise_scale|pos_embed_(shift|jitter|rescale)"
            r"|random_mask_ratio|token_dropout|replace_prob"
        ),
        r"",
    ),
    (
        Meaning.TRAINING,
        (
            r"\w*initializer\w*|init_\w+|\w*_init|\w*_init_std|embed_init_std|init_device"
            r"|\w*_loss_(weight|coef|coefficient|multiplier|reduction|scaling_factor)|weight_loss_\w+|\w*_cost"
            r"|(dice|mask|class)_weight|no_object_weight|eos_coefficient|focal_(alpha|gamma)|focal_loss_\w+|matcher_\w+"
            r"|mal_alpha|label_smoothing|gradient_checkpointing|\w*aux_loss_coef|z_loss_coefficient|ctc_zero_infinity"
            r"|pretraining_tp|\w*_loss_normalizer|ce_ignore_index|\w*loss_ignore_index|importance_sample_ratio"
            r"|oversample_ratio|train_num_points|learnable_sink_init|auxiliary_loss_weight|cross_entropy_weight"
        ),
        r"init_(layernorm_from_vision_encoder|codebook)|layerscale_value",
    ),
    (
        Meaning.OUTPUT,
        (
            r"use_cache|output_(attentions|hidden_states|router_logits|scores|a3_attentions)|return_dict|return_dict_in_generate"
            r"|chunk_size_feed_forward|is_decoder_only|num_logits_to_keep|num_beams|length_penalty|early_stopping"
            r"|max_length|min_length|max_new_tokens|\w*no_repeat_ngram_size|num_return_sequences|do_sample|top_p|typical_p"
            r"|repetition_penalty|forced_\w+|begin_suppress_tokens|num_parallel_samples|use_mems_eval"
        ),
        r"",
    ),
    (
        Meaning.POSITIONS,
        (
            r"\w*max_position_embeddings|n_positions|n_ctx|max_seq_len|max_sequence_length|max_seq_length|seq_length"
            r"|max_(source|target)_positions|max_text_len\w*|max_context_length|model_max_length|max_(text|speech)_positions"
            r"|context_size|max_relative_positions"
        ),
        r"max_2d_position_embeddings|max_text_length",
    ),
    (
        Meaning.EXPERTS,
        (
            r"num_experts|n_routed_experts|num_local_experts|moe_num_experts|num_routed_experts|n_experts|num_moe_experts"
            r"|ffn_num_experts"
        ),
        r"",
    ),
    (
        Meaning.TOP_K,
        (
            r"num_experts_per_tok(en)?|moe_topk|moe_k|top_k_experts|experts_per_token|moe_top_k|num_selected_experts"
            r"|router_topk|moe_router_topk|num_activated_experts|experts_top_k"
        ),
        r"",
    ),
    (
        Meaning.EXPERT_GROUPS,
        r"n_group|num_expert_group|n_expert_groups|moe_n_group|topk_group|moe_topk_group",
        r"",
    ),
    (
        Meaning.PERIOD,
        (
            r"\w*layer_period|\w*_every_n_layers|\w*sliding_window_pattern|\w*_interval|\w*layer_freq\w*|\w*sparse_step"
            r"|full_attn_idx|cross_attention_frequency|\w*interleave\w*_step|subsample_layers|layer_group_size"
        ),
        r"mask_\w+",
    ),
    (
        Meaning.DEPTH,
        (
            r"num_hidden_layers|n_layers?|num_layers|(encoder|decoder)_layers|depth|layers|l_layers|x_layers|r_layers"
            r"|num_(encoder|decoder|hidden|backbone|text|vision|audio|cross|fusion|conformer|transformer|resampler|perceiver"
            r"|prediction|common|decoder_hidden|encoder_hidden|local|global|xattn|attention|spatial|temporal|auxiliary"
            r"|patch_transformer|sparse_encoder|sparse_decoder|lstm|mel_attn|pooler)_(layers|blocks)"
            r"|\w+_(num_)?(hidden_)?layers|num_(encoder_|decoder_)?blocks|num_self_attends_per_block|num_trunks|\w+_depth"
            r"|num_layers_\w+|num_nextn_predict_layers|num_mtp_layers|decoder_num_layers|n_attn_blocks"
        ),
        (
            r"max_window_layers|first_k_dense_replace|num_feat_extract_layers|num_residual_layers|hidden_layers"
            r"|mlp_only_layers|num_adapter_layers|iou_head_depth|num_conv_layers|upsample_layers|num_upsample_layers"
            r"|num_feature_layers|projector_layers|num_dense_layers|num_kv_shared_layers|full_attention_layers"
            r"|cross_attention_layers|moe_layers|cat_hidden_layers|no_rope_layers|rope_scaling_layers|max_depth|min_depth"
            r"|scale_depth|duration_predictor_layers|energy_predictor_layers|pitch_predictor_layers|kv_source_layers"
            r"|extract_layers|freeze_\w+|return_\w+|num_fov_head_layers|prompt_layers|sqrt_depth|scale_sqrt_depth"
            r"|share_\w+|cross_attn_all_layers|vision_feature_layers|encode_proj_layers|speech_decoder_postnet_layers"
            r"|speech_decoder_prenet_layers|depth_separable_num_layers|lqe_layers|num_global_layers|attention_layers"
        ),
    ),
    (
        Meaning.KV_HEADS,
        (
            r"\w*num_key_value(_attention)?_heads(_per_layer)?|num_kv_heads|n_head_kv|n_kv_heads|kv_n_heads|kv_heads|\w*num_kv_heads"
            r"|multi_query_group_num|num_query_groups"
        ),
        r"",
    ),
    (
        Meaning.HEADS,
        (
            r"num_attention_heads|n_heads?|num_heads|heads|(encoder|decoder)_(attention_)?heads|attention_heads"
            r"|\w*num_(attention|query)_heads|\w+_(num_)?attention_heads|num_\w*attention_heads\w*|index_n_heads"
            r"|linear_num_(key|value)_heads|linear_num_heads|mamba_n_heads|n_mamba_heads|mamba_num_heads|resampler_n?_?heads"
            r"|decoder_num_heads|cross_num_attention_heads|num_sliding_attention_heads"
        ),
        r"guided_attention_loss_num_heads|output_attention_heads",
    ),
    (
        Meaning.HEAD_DIM,
        (
            r"head_dim|d_head|\w*_head_dim\w*|head_dim_\w+|d_kv|kv_channels|attention_head_size|rotary_dim|dim_head|\w+_dim_head"
            r"|attention_head_dim|mamba_d_head|mamba_headdim|attention_key_channels|global_pointer_head_size|cross_head_dim"
        ),
        r"pad_head_dim_to_multiple_of",
    ),
    (
        Meaning.IMAGE_SIZE,
        r"image_size|img_size|input_resolution|force_image_size|max_img_size",
        r"",
    ),
    (
        Meaning.GEOMETRY,
        (
            r"\w*patch_size\w*|\w*kernel\w*|\w*stride\w*|\w*padding\w*|\w*dilation\w*|\w*window_size\w*|\w*upsampl\w*"
            r"|\w*downsampl\w*|spatial_merge_size|temporal_patch_size|tubelet_size|merge_size|pool_scales|sr_ratios"
            r"|\w*_conv(_dim)?_kernel\w*|mamba_d_conv|conv_L_cache|conv_window|patch_length|hop_length|frame_size"
        ),
        (
            r"upsample_initial_channel|upsample_groups|\w*(channels|hidden_size|embed_dim|hidden_act|mode|padding_value)|use_\w+"
            r"|disable_\w+|\w*ignore_padding\w*|\w*kernel_dtype|kernel_predictor_num_blocks|upsampler"
        ),
    ),
    (
        Meaning.CHANNELS,
        (
            r"num_channels|in_chans|num_image_channels|image_channels|audio_channels|num_mel_bins|n_mels|mel_bins"
            r"|input_feat_per_channel|feature_projection_input_dim|num_output_channels|num_input_channels|mel_channels"
        ),
        r"",
    ),
    (
        Meaning.QUERIES,
        r"num_queries|num_object_queries|num_denoising|two_stage_num_proposals|group_detr",
        r"",
    ),
    (
        Meaning.WIDTH,
        (
            r"\w*(hidden_size|hidden_dim|d_model|n_embd|n_inner|intermediate|ffn_dim|embed_dim|d_embed|emb_dim"
            r"|embedding_size|d_ff|d_inner|channels|_proj_size|_size_per_layer|hidden_act_dim|hidden_sizes|embed_dims"
            r"|neck_hidden|fusion_hidden|mlp_dim|word_embed|embedding_dimension|conv_dim|num_filters|cross_attention"
            r"|lru_width|q_dim|d_latents|mlp_hidden|attention_hidden|ffn_hidden|dim_feedforward|feature_size|output_size"
            r"|projection_size|d_shared|units|bottleneck|adaptor_dim)\w*"
            r"|\w+_dims?|dim|\w+_rank|\w*width|\w+_hidden|\w+_groups|mamba_d_ssm"
        ),
        (
            r"\w*(num_channels|in_chans|image_channels|audio_channels|feature_projection_input_dim|input_feat_per_channel"
            r"|num_mel|mel_dim|chunk|batch_size|vocab|num_codebooks|state_dim|act_dim|input_size|act_fn|hidden_act\b"
            r"|mask_input_channels|input_channels|temporal|pretrain|_config|rounding|time_step_rank|num_output_channels"
            r"|depth_output|feature_dim|mel_channels|num_input_channels|n_mels|max_|static_|patch_embed_input|bias|use_"
            r"|output_hidden_states|norm|activation|dropout|mamba_n_groups|n_groups|indices|hook_ids|scaling_factor"
            r"|for_attention|embeddings|multiplier|block_auto)\w*"
            r"|in_channels|out_channels|pos_emb_(height|width)|\w*_layers|confidence|width_coefficient|\w*width_multiplier|width_factor|ssm_n_groups"
        ),
    ),
    (
        Meaning.SCALAR,
        (
            r"\w*eps(ilon)?|\w*_eps_\w+|rope_theta|\w*rope_theta|\w*rotary_embedding_base|rotary_emb_base|logit_scale\w*"
            r"|\w*softcap(ping)?|query_pre_attn_scalar|\w*_multipliers?|scale_emb|scale_depth|dim_model_base|temperature\w*"
            r"|\w*temperature|routed_scaling_factor|\w*scaling_factor|route_scale|time_step_(min|max|floor|limit|scale)"
            r"|\w*_slope|\w*momentum|norm_(mean|std)|image_(mean|std)|clip_qkv|swiglu_(limit|alpha)|max_logit_scale"
            r"|layer_?scale_value|attention_value_scale|router_temperature|sampling_rate|\w*_threshold|beta|alpha"
        ),
        r"(channel|width|depth|depthwise|ffn)_multiplier|mlp_multipliers_per_layer|\w*_steps",
    ),
)

_RULES: Final = tuple(
    (m, re.compile(f"(?:{yes})\\Z"), re.compile(f"(?:{no})\\Z") if no else None) for m, yes, no in _TABLE
)


@lru_cache(maxsize=8192)
def meaning(field: str) -> Meaning:
    """The first row of the table whose pattern matches the whole name and whose exceptions do not."""
    for found, pattern, exceptions in _RULES:
        if pattern.match(field) and not (exceptions and exceptions.match(field)):
            return found
    return Meaning.STRUCTURE
