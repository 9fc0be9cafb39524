"""Parameters that an ordinary training run of a family's head does not reach, named, each with its reason."""

from __future__ import annotations

import re
from typing import Final

_UNREACHABLE: Final[tuple[tuple[str, str, str], ...]] = (
    ("", r"mask_tokens?$|mask_embed\w*$|masked_spec_embed$|mask_emb$", "used only where something is masked"),
    ("", r"(^|\.)pooler\.", "the head reads every position, not the pooled one"),
    (
        "",
        r"(vision|image|visual)\w*\.(.*\.)?(post_layernorm|head\.(probe|attention|layernorm|mlp))",
        "features are read before pooling",
    ),
    ("", r"^(post_layernorm|head\.(probe|attention|layernorm|mlp))", "features are read before pooling"),
    ("", r"(^|\.)(indexer|compressor)\.", "chooses positions, which has no derivative"),
    ("", r"denoising_class_embed|pre_bbox_head", "used only with denoising queries"),
    ("esm", r"contact_head\.", "used only to predict contacts"),
    ("reformer", r"lm_head\.bias", "shadowed by the decoder's own bias"),
    ("", r"swin\.layernorm\.|^layernorm\.", "a backbone's stages have norms of their own"),
    ("", r"prompt_encoder\.mask_embed\.", "used only where a mask is prompted"),
    ("phimoe", r"\.router\.weight$", "without jitter one expert is certain"),
    ("canine", r"^(canine\.)?projection\.", "the head reads the molecules' pool, not the upsampled characters"),
    ("seamless_m4t|seamless_m4t_v2", r"(^|\.)(t2u_model|vocoder)\.", "used only in generation"),
    ("seamless_m4t|seamless_m4t_v2", r"(^|\.)(text_encoder|speech_encoder)\.", "one of two encoders reads an input"),
    ("blip", r"text_model\..*crossattention\.", "the contrastive text model reads no image"),
    ("udop", r"^decoder\.(embed_patches|relative_bias)", "a decoder reads no patches"),
    ("tapas", r"column_output", "used only with answers of one column"),
    ("unispeech|unispeech-sat", r"ctc_proj|label_embeddings_concat|quantizer\.", "the loss upstream leaves them out"),
    ("qwen3_5|qwen3_5_moe", r"model\.visual\.", "the text head takes no pixels"),
    ("vjepa2", r"\.predictor\.", "the classifier reads the encoder alone"),
    (
        "detr|maskformer|table-transformer|conditional_detr|dab-detr|deformable_detr",
        r"decoder\.layers\.0\.self_attn\.",
        "the first decoder layer attends among zeros",
    ),
    (
        "dpt|depth_anything|prompt_depth_anything|zoedepth|depth_pro",
        r"fusion_stage\.(layers|intermediate)\.0\.residual_layer1\.",
        "the first fusion has nothing to add",
    ),
    ("vibevoice_asr|vibevoice", r"tokenizer_encoder\.", "speech is encoded without a gradient"),
    ("vibevoice", r"semantic_connector\.", "only generation reads what was said so far"),
    ("musicgen|musicgen_melody", r"^audio_encoder\.", "codes are an input: the codec makes them"),
    ("speecht5", r"decoder\.prenet\.layers\.", "without dropout upstream's mask lets nothing through"),
    ("janus", r"(^|\.)(generation_\w+|vqmodel)\.", "used only to make pictures"),
    ("jev", r"(^|\.)(vision_tower|visual|audio_tower|embed_vision|embed_audio)\.", "a decision is read from text"),
    ("lightglue|superglue", r"keypoint_detector\.", "keypoints are detected without a gradient"),
    (
        "chameleon|emu3|apertus1p5",
        r"(vqmodel|vision_tower|audio_tower|vision_model|audio_model|tokenizer)\.",
        "codes are chosen",
    ),
    ("csm", r"codec_model\.", "codes are made without a gradient"),
    ("minicpmv4_6|minicpmv4_7|minicpm_ocr", r"vit_merger\.", "used only where features are merged once more"),
    (
        "d_fine|deimv2|pp_doclayout_v4",
        r"^decoder\.(lqe_layers|class_embed)",
        "scores are made for the head, which the bare model lacks",
    ),
    ("maskformer-swin", r"^hidden_states_norms\.", "norms of stages that are not read"),
    ("pixio", r"^pixio\.layernorm", "a backbone's stages are read before it"),
    ("nemotron3_diarization|nemotron3_5_transcribe_audio", r"silence_embeds", "nothing is silent"),
    (
        "pi0",
        r"vlm\.language_model\.(layers\.\d+\.(self_attn\.(q|o)_proj|mlp|post_attention_layernorm)|norm)",
        "actions read the last layer's keys and values alone",
    ),
    ("sam|sam_hq", r"prompt_encoder\.(point_embed|not_a_point_embed|no_mask_embed)", "one kind of prompt is given"),
    ("sam3|sam3_lite_text", r"text_encoder\.text_projection", "the text is read before it"),
    (
        "sam3|sam3_lite_text|sam3_tracker|sam3_tracker_video|sam3_video",
        r"neck\.fpn_layers\.3\.",
        "the coarsest level is left out",
    ),
    (
        "pe_audio|pe_audio_encoder|pe_audio_video|pe_audio_video_encoder",
        r"dac_encoder\.|embedder\.bottleneck\.",
        "encoded without a gradient",
    ),
    ("pp_formulanet", r"encoder_attn\.(q|k)_proj", "the picture leaves one feature to attend to"),
    ("gradium_phonon_tts|pocket_tts", r"audio_prompt_proj|num_speakers|duration_delta", "no voice is prompted"),
    ("beit|data2vec-vision", r"(layers|encoder\.layer)\.3\.", "comes after the last layer that is read"),
    ("fastspeech2_conformer_with_hifigan", r"^vocoder\.", "the loss is of spectrograms"),
    ("pp_doclayout_v4", r"decoder\.class_embed", "only the chosen queries are scored"),
    ("video_llava", r"(image|video)_tower\.encoder\.layers\.1\.", "comes after the last layer that is read"),
    (
        "unispeech-sat",
        r"^(project_q|project_hid|layer_norm_for_extract|dropout_features|speaker_proj)",
        "the loss upstream leaves them out",
    ),
    ("speecht5", r"decoder\.prenet\.", "without dropout upstream's mask lets nothing through"),
    ("sam3|sam3_lite_text", r"pixel_decoder\.(conv_layers|norms)\.2\.", "the coarsest level is left out"),
    ("sam3|sam3_lite_text", r"geometry_encoder\.", "no box is prompted"),
    ("wavtokenizer", r"encoder_model\.", "codes are chosen, which has no derivative"),
    ("rf_detr|lw_detr", r"enc_out_class_embed\.", "chooses regions, which has no derivative"),
    (
        "grounding-dino|mm-grounding-dino",
        r"model\.(enc_output|enc_output_norm|encoder_output_\w+)\b",
        "proposals are chosen without a gradient",
    ),
    ("lxmert", r"^(cls\.seq_relationship|obj_predict_head|answer_head)", "no object and no answer is asked for"),
    ("lightglue", r"(match_assignment_layers\.0|token_confidence)", "read only to stop early"),
    ("blip-2", r"^itm_head", "used only where pairs are told apart one by one"),
    ("canine", r"final_char_encoder\.", "the head reads the molecules' pool, not the upsampled characters"),
    ("mra", r"attention\.(self\.(query|key|value)|output\.dense)\.", "without its CUDA kernel attention gives zeros"),
    ("longformer", r"(query|key|value)(_global)?\.", "the head reads the first token alone, which attends globally"),
    ("layoutlmv3", r"encoder\.rel_pos_(x_|y_)?bias\.", "positions are looked up without a gradient"),
    ("hunyuan_v1_moe", r"\.gate\.wg\.", "one expert alone is certain"),
    (
        "lilt",
        r"layout_(value|output|intermediate)\.|layout_output|layout_intermediate",
        "the last layout is unread",
    ),
    ("lxmert", r"x_layers\.\d+\.visn_|token_type_embeddings", "the head reads the text side"),
    ("owlvit|owlv2", r"logit_scale$|text_projection|visual_projection", "compares whole images only"),
    (
        "oneformer",
        r"criterion\.logit_scale$",
        "no text queries are compared",
    ),
    (
        "mimi|encodec|dac|neucodec|xcodec|xcodec2|pocket_tts_audio_tokenizer",
        r"encoder|quantizer\.|^fc\b|semantic|downsample",
        "codes are chosen, which has no derivative",
    ),
    ("kyutai_speech_to_text", r"^codec_model\.", "codes are an input: the codec makes them"),
    ("flava", r"logit_scale$|^(image|text)_projection", "used only in the contrastive loss"),
    ("deepseek_ocr2", r"query_1024_resolution\.", "asks pictures of more than 144 patches alone"),
    ("flava", r"^(mim|mlm)_head\.", "pairs of picture and text train the multimodal heads instead"),
    ("clvp", r"^(conditioning_encoder|speech_decoder_model)\.", "speech codes are chosen, which has no derivative"),
    ("luke", r"entity_predictions\.", "no entity is masked"),
    ("nemo_speechlm", r"diarization_model\.", "who speaks is told by a threshold, which has no derivative"),
    ("nemo_speechlm", r"(^|\.)word_timestamp_(encoder|head)\.", "used only to align words after generation"),
    ("pop2piano", r"^mel_conditioner\.", "only generation names a composer"),
    ("granite_docling|granite_docling_vision", r"connector\.fine\.", "a batch takes one of two paths, the coarse one"),
    ("video_llava", r"video_tower\.", "images and videos have towers of their own"),
)
"""Parts that an ordinary training run of some families' heads does not reach (family pattern, name pattern, why)."""


def excuse(family: str, name: str) -> str:
    """Why the parameter `name` of a model of type `family` cannot have a gradient; empty where it can."""
    fits = (why for families, pattern, why in _UNREACHABLE if _is_of(family, families) and re.search(pattern, name))
    return next(fits, "")


def _is_of(family: str, families: str) -> bool:
    return not families or family in families.split("|")
