"""Every head class of the installed transformers, with the config its class makes when it is told nothing.

Imports transformers and every configuration module of it (about 7 s, 340 MB), and no modelling code.
"""

from __future__ import annotations

import dataclasses
import logging
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from transformers import PreTrainedConfig
from transformers.models.auto import configuration_auto, modeling_auto

TASKS: Final = (
    ("MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", "text-generation"),
    ("MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES", "image-text-to-text"),
    ("MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES", "automatic-speech-recognition"),
    ("MODEL_FOR_CTC_MAPPING_NAMES", "automatic-speech-recognition"),
    ("MODEL_FOR_RNNT_MAPPING_NAMES", "automatic-speech-recognition"),
    ("MODEL_FOR_TDT_MAPPING_NAMES", "automatic-speech-recognition"),
    ("MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES", "text2text-generation"),
    ("MODEL_FOR_MASKED_LM_MAPPING_NAMES", "fill-mask"),
    ("MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES", "text-classification"),
    ("MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES", "token-classification"),
    ("MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES", "question-answering"),
    ("MODEL_FOR_DOCUMENT_QUESTION_ANSWERING_MAPPING_NAMES", "document-question-answering"),
    ("MODEL_FOR_TABLE_QUESTION_ANSWERING_MAPPING_NAMES", "table-question-answering"),
    ("MODEL_FOR_VISUAL_QUESTION_ANSWERING_MAPPING_NAMES", "visual-question-answering"),
    ("MODEL_FOR_MULTIPLE_CHOICE_MAPPING_NAMES", "multiple-choice"),
    ("MODEL_FOR_NEXT_SENTENCE_PREDICTION_MAPPING_NAMES", "text-classification"),
    ("MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES", "image-classification"),
    ("MODEL_FOR_ZERO_SHOT_IMAGE_CLASSIFICATION_MAPPING_NAMES", "zero-shot-image-classification"),
    ("MODEL_FOR_OBJECT_DETECTION_MAPPING_NAMES", "object-detection"),
    ("MODEL_FOR_ZERO_SHOT_OBJECT_DETECTION_MAPPING_NAMES", "zero-shot-object-detection"),
    ("MODEL_FOR_UNIVERSAL_SEGMENTATION_MAPPING_NAMES", "image-segmentation"),
    ("MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING_NAMES", "image-segmentation"),
    ("MODEL_FOR_INSTANCE_SEGMENTATION_MAPPING_NAMES", "image-segmentation"),
    ("MODEL_FOR_IMAGE_SEGMENTATION_MAPPING_NAMES", "image-segmentation"),
    ("MODEL_FOR_DEPTH_ESTIMATION_MAPPING_NAMES", "depth-estimation"),
    ("MODEL_FOR_KEYPOINT_DETECTION_MAPPING_NAMES", "keypoint-detection"),
    ("MODEL_FOR_KEYPOINT_MATCHING_MAPPING_NAMES", "keypoint-detection"),
    ("MODEL_FOR_POSE_ESTIMATION_MAPPING_NAMES", "keypoint-detection"),
    ("MODEL_FOR_MASK_GENERATION_MAPPING_NAMES", "mask-generation"),
    ("MODEL_FOR_IMAGE_TO_IMAGE_MAPPING_NAMES", "image-to-image"),
    ("MODEL_FOR_VIDEO_CLASSIFICATION_MAPPING_NAMES", "video-classification"),
    ("MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES", "audio-classification"),
    ("MODEL_FOR_AUDIO_FRAME_CLASSIFICATION_MAPPING_NAMES", "audio-classification"),
    ("MODEL_FOR_AUDIO_XVECTOR_MAPPING_NAMES", "audio-classification"),
    ("MODEL_FOR_TEXT_TO_WAVEFORM_MAPPING_NAMES", "text-to-speech"),
    ("MODEL_FOR_TEXT_TO_SPECTROGRAM_MAPPING_NAMES", "text-to-speech"),
    ("MODEL_FOR_TIME_SERIES_CLASSIFICATION_MAPPING_NAMES", "time-series-forecasting"),
    ("MODEL_FOR_TIME_SERIES_PREDICTION_MAPPING_NAMES", "time-series-forecasting"),
    ("MODEL_FOR_TIME_SERIES_REGRESSION_MAPPING_NAMES", "time-series-forecasting"),
    ("MODEL_FOR_RETRIEVAL_MAPPING_NAMES", "visual-document-retrieval"),
    ("MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES", "any-to-any"),
)
"""The auto mapping a class stands in first decides its Hub task; classes of other mappings extract features."""
COMMON: Final = frozenset(field.name for field in dataclasses.fields(PreTrainedConfig))
"""Fields every config has; a config.json names them only when they are not the default."""


@dataclass(frozen=True)
class Architecture:
    """One (model type, class) pair that an auto mapping offers."""

    model_type: str
    class_name: str
    task: str


def heads() -> list[Architecture]:
    """Every pair once, in a fixed order: by task as listed above, then by model type."""
    found: dict[tuple[str, str], Architecture] = {}
    named = dict(TASKS)
    rest = sorted(name for name in dir(modeling_auto) if _is_mapping(name) and name not in named)
    for name, task in (*TASKS, *((name, "feature-extraction") for name in rest)):
        mapping: Mapping[str, Any] = getattr(modeling_auto, name, {})
        for model_type, classes in sorted(mapping.items()):
            for class_name in (classes,) if isinstance(classes, str) else classes:
                if class_name:
                    found.setdefault((model_type, class_name), Architecture(model_type, class_name, task))
    return list(found.values())


class Configs:
    """Config classes by model type, and the full-size defaults each stands for."""

    def __init__(self, completions: Mapping[str, Mapping[str, Any]]) -> None:
        logging.getLogger("transformers").setLevel(logging.CRITICAL)
        warnings.simplefilter("ignore")
        self._completions = completions

    def default(self, model_type: str) -> dict[str, Any] | None:
        """What a config.json of this type would hold; None when the class cannot make one by itself."""
        completion = self._completions.get(model_type, {})
        made = self._construct(model_type, completion)
        return None if made is None else {"model_type": model_type, **explicit(made), **completion}

    def accepts(self, value: Mapping[str, Any]) -> bool:
        """Does the config class take this config.json?"""
        return self._construct(value["model_type"], value) is not None

    def _construct(self, model_type: str, value: Mapping[str, Any]) -> PreTrainedConfig | None:
        fields = {key: item for key, item in value.items() if key not in ("model_type", "architectures")}
        try:
            made = configuration_auto.CONFIG_MAPPING[model_type].from_dict(fields)
        except Exception:  # noqa: BLE001 - a config class may raise anything; that is the answer asked for
            return None
        return made if isinstance(made, PreTrainedConfig) else None


def explicit(made: PreTrainedConfig, alone: PreTrainedConfig | None = None) -> dict[str, Any]:
    """The fields a config.json spells out: what the class declares with a value, and its sub-configs.

    Fields declared as None are derived by the class (`head_dim`, `layer_types`) and left out, unless the value is not
    the one the class gives itself when it stands `alone`: then a surrounding config has set it.
    """
    found: dict[str, Any] = {}
    for field in dataclasses.fields(made):
        value = vars(made).get(field.name)  # not getattr, which refuses fields that differ by layer
        if isinstance(value, PreTrainedConfig):
            found[field.name] = {"model_type": value.model_type, **explicit(value, _alone(type(value)))}
        elif field.name in COMMON or value is None or not _is_plain(value):
            continue
        elif field.default is not None or (alone is not None and vars(alone).get(field.name) != value):
            found[field.name] = list(value) if isinstance(value, tuple) else value
    return found


def _alone(config_class: type[PreTrainedConfig]) -> PreTrainedConfig | None:
    try:
        return config_class()
    except Exception:  # noqa: BLE001 - as above
        return None


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(_is_plain(item) for item in value)
    return isinstance(value, bool | int | float | str)


def _is_mapping(name: str) -> bool:
    return name.startswith("MODEL_") and name.endswith("_MAPPING_NAMES")


def walk(value: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """The config and every sub-config of it, outermost first."""
    yield path, value
    for key, item in value.items():
        if isinstance(item, dict) and "model_type" in item:
            yield from walk(item, (*path, key))
