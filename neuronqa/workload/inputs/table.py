"""Which function makes which argument of `forward`, and which optional arguments are always given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from neuronqa.workload.inputs import series, sound, text, vision
from neuronqa.workload.inputs.scene import Form, Scene

Maker = Callable[[Scene], list[Form]]


def _hidden_states(scene: Scene) -> list[Form]:
    """Vision towers call their packed patches so."""
    return vision.packed(scene) if "grid_thw" in scene.parameters else text.embeddings(scene)


MAKERS: Final[Mapping[str, Maker]] = {
    "input_ids": text.input_ids,
    "decoder_input_ids": text.decoder_input_ids,
    "attention_mask": text.ones,
    "token_type_ids": text.zeros,
    "mm_token_type_ids": text.zeros,
    "position_ids": text.positions,
    "inputs_embeds": text.embeddings,
    "noise_embeds": text.embeddings,
    "context_hidden_states": text.embeddings,
    "encoder_hidden_states": text.embeddings,
    "hidden_states": _hidden_states,
    "bbox": text.boxes,
    "classes_input_ids": text.class_names,
    "classes_attention_mask": text.class_mask,
    "classes_structure": text.class_structure,
    "tasks_input_ids": text.task_names,
    "tasks_attention_mask": text.task_mask,
    "task_inputs": text.task_inputs,
    "text_inputs": text.text_inputs,
    "qformer_input_ids": text.qformer_ids,
    "qformer_attention_mask": text.ones,
    "pixel_values": vision.pixel_values,
    "images": vision.pixel_values,
    "pixel_values_images": vision.pixel_values,
    "pixel_values_videos": vision.videos,
    "pixel_mask": vision.pixel_mask,
    "pixel_attention_mask": vision.patch_mask,
    "pixel_position_ids": vision.patch_positions,
    "image_grid_thw": vision.grids,
    "grid_thw": vision.grids,
    "image_sizes": vision.sizes,
    "target_sizes": vision.sizes,
    "original_sizes": vision.sizes,
    "spatial_shapes": vision.spatial_shapes,
    "merge_sizes": vision.merge_sizes,
    "image_merge_sizes": vision.merge_sizes,
    "bool_masked_pos": vision.masked_patches,
    "flattened_patches": vision.flattened_patches,
    "prompt_masks": vision.second_image,
    "prompt_pixel_values": vision.second_image,
    "high_res_pixel_values": vision.high_resolution,
    "input_points": vision.points,
    "input_labels": vision.point_labels,
    "input_values": sound.waveform,
    "audio_values": sound.waveform,
    "waveform": sound.waveform,
    "audio_input_values": sound.waveform,
    "audio": sound.waveform,
    "speech_values": sound.waveform,
    "input_features": sound.spectrogram,
    "audio_features": sound.spectrogram,
    "audio_input_features": sound.spectrogram,
    "input_features_mask": sound.frames_mask,
    "audio_mel": sound.mel_frames,
    "audio_mel_mask": sound.mel_frames_mask,
    "spectrogram": sound.vocoder_input,
    "audio_codes": sound.codes,
    "codes": sound.codes,
    "past_values": series.past_values,
    "past_observed_mask": series.past_mask,
    "past_values_padding": series.past_padding,
    "future_values": series.future_values,
    "past_time_features": series.past_features,
    "future_time_features": series.future_features,
    "static_categorical_features": series.static_categories,
    "static_real_features": series.static_reals,
    "freq": series.frequency,
    "aspect_ratio_ids": text.zeros,
    "aspect_ratio_mask": text.ones,
    "action_embeds": text.embeddings,
    "marks": text.zeros,
    "num_options": text.ones,
    "question_type_ids": text.zeros,
    "inputs": text.embeddings,
    "states": series.states,
    "actions": series.actions,
    "rewards": series.rewards,
    "returns_to_go": series.rewards,
    "timesteps": text.positions,
    "state": series.state,
    "timestep": series.timestep,
    "latents": series.latents,
    "query_embeds": series.queries,
    "visual_feats": partial(series.regions, width="visual_feat_dim"),
    "visual_pos": partial(series.regions, width="visual_pos_dim"),
    "visual_embeds": partial(series.regions, width="visual_embedding_dim"),
    "visual_attention_mask": series.regions_mask,
}

ALWAYS: Final = frozenset(
    {
        "pixel_values",
        "input_ids",
        "input_features",
        "input_values",
        "image_grid_thw",
        "grid_thw",
        "spatial_shapes",
        "bbox",
        "decoder_input_ids",
        "pixel_mask",
        "flattened_patches",
        "past_values",
        "future_values",
        "past_time_features",
        "future_time_features",
        "past_observed_mask",
        "states",
        "actions",
        "rewards",
        "returns_to_go",
        "timesteps",
        "task_inputs",
        "text_inputs",
        "visual_feats",
        "visual_pos",
        "visual_embeds",
        "qformer_input_ids",
        "pixel_attention_mask",
    }
)
"""Optional arguments that carry a modality."""

MODALITIES: Final[Mapping[str, str]] = {
    "pixel_values": "image",
    "images": "image",
    "pixel_values_images": "image",
    "flattened_patches": "image",
    "image_grid_thw": "image",
    "pixel_values_videos": "video",
    "input_features": "audio",
    "input_values": "audio",
    "audio_features": "audio",
    "bbox": "layout",
    "visual_embeds": "regions",
}
"""What a run lacks when one of these is left out."""
