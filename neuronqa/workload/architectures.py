"""What the installed transformers can build: model types, model classes, where they live and what each is for.

Read from the library's own tables of names, so nothing is imported but the tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final

import transformers
from transformers.models.auto import configuration_auto, modeling_auto


class Task(StrEnum):
    """What a head is for: it decides labels and loss."""

    CAUSAL_LM = "causal-lm"
    MASKED_LM = "masked-lm"
    SEQ2SEQ_LM = "seq2seq-lm"
    MULTIMODAL_LM = "multimodal-lm"
    PRETRAINING = "pretraining"
    SEQUENCE_CLASSIFICATION = "sequence-classification"
    TOKEN_CLASSIFICATION = "token-classification"
    QUESTION_ANSWERING = "question-answering"
    MULTIPLE_CHOICE = "multiple-choice"
    NEXT_SENTENCE = "next-sentence"
    IMAGE_CLASSIFICATION = "image-classification"
    VIDEO_CLASSIFICATION = "video-classification"
    AUDIO_CLASSIFICATION = "audio-classification"
    AUDIO_FRAME_CLASSIFICATION = "audio-frame-classification"
    AUDIO_XVECTOR = "audio-xvector"
    CTC = "ctc"
    TRANSDUCER = "transducer"
    SPEECH_SEQ2SEQ = "speech-seq2seq"
    TEXT_TO_SOUND = "text-to-sound"
    OBJECT_DETECTION = "object-detection"
    UNIVERSAL_SEGMENTATION = "universal-segmentation"
    SEMANTIC_SEGMENTATION = "semantic-segmentation"
    MASK_GENERATION = "mask-generation"
    DENSE_PREDICTION = "dense-prediction"
    MASKED_IMAGE = "masked-image"
    KEYPOINTS = "keypoints"
    VISUAL_QUESTION_ANSWERING = "visual-question-answering"
    CONTRASTIVE = "contrastive"
    TIME_SERIES = "time-series"
    DECISION = "decision"
    BACKBONE = "backbone"
    FEATURES = "features"


@dataclass(frozen=True, slots=True)
class Architecture:
    """A model type and one class that can be made of its config."""

    model_type: str
    class_name: str
    module: str
    """Import path of the modelling module."""
    task: Task


_TASKS: Final[tuple[tuple[str, Task], ...]] = (
    ("MODEL_FOR_CAUSAL_LM", Task.CAUSAL_LM),
    ("MODEL_FOR_SPEECH_SEQ_2_SEQ", Task.SPEECH_SEQ2SEQ),
    ("MODEL_FOR_CTC", Task.CTC),
    ("MODEL_FOR_RNNT", Task.TRANSDUCER),
    ("MODEL_FOR_TDT", Task.TRANSDUCER),
    ("MODEL_FOR_IMAGE_TEXT_TO_TEXT", Task.MULTIMODAL_LM),
    ("MODEL_FOR_MULTIMODAL_LM", Task.MULTIMODAL_LM),
    ("MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM", Task.SEQ2SEQ_LM),
    ("MODEL_FOR_MASKED_LM", Task.MASKED_LM),
    ("MODEL_FOR_SEQUENCE_CLASSIFICATION", Task.SEQUENCE_CLASSIFICATION),
    ("MODEL_FOR_TOKEN_CLASSIFICATION", Task.TOKEN_CLASSIFICATION),
    ("MODEL_FOR_VISUAL_QUESTION_ANSWERING", Task.VISUAL_QUESTION_ANSWERING),
    ("MODEL_FOR_DOCUMENT_QUESTION_ANSWERING", Task.QUESTION_ANSWERING),
    ("MODEL_FOR_TABLE_QUESTION_ANSWERING", Task.QUESTION_ANSWERING),
    ("MODEL_FOR_QUESTION_ANSWERING", Task.QUESTION_ANSWERING),
    ("MODEL_FOR_MULTIPLE_CHOICE", Task.MULTIPLE_CHOICE),
    ("MODEL_FOR_NEXT_SENTENCE_PREDICTION", Task.NEXT_SENTENCE),
    ("MODEL_FOR_IMAGE_CLASSIFICATION", Task.IMAGE_CLASSIFICATION),
    ("MODEL_FOR_VIDEO_CLASSIFICATION", Task.VIDEO_CLASSIFICATION),
    ("MODEL_FOR_AUDIO_CLASSIFICATION", Task.AUDIO_CLASSIFICATION),
    ("MODEL_FOR_AUDIO_FRAME_CLASSIFICATION", Task.AUDIO_FRAME_CLASSIFICATION),
    ("MODEL_FOR_AUDIO_XVECTOR", Task.AUDIO_XVECTOR),
    ("MODEL_FOR_OBJECT_DETECTION", Task.OBJECT_DETECTION),
    ("MODEL_FOR_ZERO_SHOT_OBJECT_DETECTION", Task.OBJECT_DETECTION),
    ("MODEL_FOR_INSTANCE_SEGMENTATION", Task.UNIVERSAL_SEGMENTATION),
    ("MODEL_FOR_UNIVERSAL_SEGMENTATION", Task.UNIVERSAL_SEGMENTATION),
    ("MODEL_FOR_IMAGE_SEGMENTATION", Task.UNIVERSAL_SEGMENTATION),
    ("MODEL_FOR_SEMANTIC_SEGMENTATION", Task.SEMANTIC_SEGMENTATION),
    ("MODEL_FOR_MASK_GENERATION", Task.MASK_GENERATION),
    ("MODEL_FOR_DEPTH_ESTIMATION", Task.DENSE_PREDICTION),
    ("MODEL_FOR_NORMAL_ESTIMATION", Task.DENSE_PREDICTION),
    ("MODEL_FOR_POINTMAP_ESTIMATION", Task.DENSE_PREDICTION),
    ("MODEL_FOR_IMAGE_MATTING", Task.DENSE_PREDICTION),
    ("MODEL_FOR_IMAGE_TO_IMAGE", Task.DENSE_PREDICTION),
    ("MODEL_FOR_POSE_ESTIMATION", Task.KEYPOINTS),
    ("MODEL_FOR_KEYPOINT", Task.KEYPOINTS),
    ("MODEL_FOR_MASKED_IMAGE_MODELING", Task.MASKED_IMAGE),
    ("MODEL_FOR_CAUSAL_IMAGE_MODELING", Task.CAUSAL_LM),
    ("MODEL_FOR_TEXT_RECOGNITION", Task.CTC),
    ("MODEL_FOR_TABLE_RECOGNITION", Task.SEQ2SEQ_LM),
    ("MODEL_FOR_TEXT_TO", Task.TEXT_TO_SOUND),
    ("MODEL_FOR_TIME_SERIES", Task.TIME_SERIES),
    ("MODEL_FOR_DECISION", Task.DECISION),
    ("MODEL_FOR_ZERO_SHOT_IMAGE_CLASSIFICATION", Task.CONTRASTIVE),
    ("MODEL_FOR_RETRIEVAL", Task.CONTRASTIVE),
    ("MODEL_FOR_PRETRAINING", Task.PRETRAINING),
    ("MODEL_FOR_BACKBONE", Task.BACKBONE),
    ("MODEL", Task.FEATURES),
)
"""Beginnings of the names of the auto tables, most telling first: the first table that lists a class names its task.

The same order decides which class stands for a config that names none.
"""

_SUFFIXES: Final[tuple[tuple[str, Task], ...]] = (
    ("ForCausalLM", Task.CAUSAL_LM),
    ("LMHeadModel", Task.CAUSAL_LM),
    ("ForMaskedLM", Task.MASKED_LM),
    ("ForConditionalGeneration", Task.MULTIMODAL_LM),
    ("ForPreTraining", Task.PRETRAINING),
    ("ForSequenceClassification", Task.SEQUENCE_CLASSIFICATION),
    ("ForTokenClassification", Task.TOKEN_CLASSIFICATION),
    ("ForQuestionAnswering", Task.QUESTION_ANSWERING),
    ("ForMultipleChoice", Task.MULTIPLE_CHOICE),
    ("ForImageClassification", Task.IMAGE_CLASSIFICATION),
    ("ForVideoClassification", Task.VIDEO_CLASSIFICATION),
    ("ForObjectDetection", Task.OBJECT_DETECTION),
    ("ForSemanticSegmentation", Task.SEMANTIC_SEGMENTATION),
    ("ForCTC", Task.CTC),
    ("Backbone", Task.BACKBONE),
)
"""For classes in no auto table."""


def is_known(model_type: str) -> bool:
    """Does the installed transformers have a config class for `model_type`?"""
    return model_type in configuration_auto.CONFIG_MAPPING


def find(model_type: str, class_name: str) -> Architecture | None:
    """Return the class `class_name` as one of `model_type`, or None when it is not one of that type's.

    Classes in no auto table count when they live in the type's own modelling module.
    """
    listed = _listed().get((model_type, class_name))
    if listed is not None:
        return listed
    module = _module_of(class_name)
    if module is None or _folder(module) != configuration_auto.model_type_to_module_name(model_type):
        return None
    return Architecture(model_type, class_name, module, _task_by_suffix(class_name))


def default(model_type: str) -> Architecture | None:
    """The class that stands for a config of `model_type` that names none; None for parts of other configs."""
    return _defaults().get(model_type)


def types_of(class_name: str) -> tuple[str, ...]:
    """The model types whose configs `class_name` is made of, those it is named for first."""
    listed = [key[0] for key in _listed() if key[1] == class_name]
    module = _module_of(class_name)
    own = _folder(module) if module else ""
    by_folder = [t for t in configuration_auto.CONFIG_MAPPING if _type_folder(t) == own]
    found = listed or by_folder
    return tuple(sorted(found, key=lambda t: (_type_folder(t) != own, len(t), t)))


def pairs() -> tuple[Architecture, ...]:
    """Every (model type, class) of the auto tables, sorted."""
    return tuple(_listed()[key] for key in sorted(_listed()))


@cache
def _tables() -> tuple[tuple[Task, dict[str, str | tuple[str, ...]]], ...]:
    ending = "_MAPPING_NAMES"
    names = [n for n in vars(modeling_auto) if n.startswith("MODEL_") and n.endswith(ending)]
    ranked = sorted((_rank(name), name) for name in names)
    return tuple((_TASKS[rank][1], getattr(modeling_auto, name)) for rank, name in ranked)


def _rank(table: str) -> int:
    exact = [i for i, (start, _) in enumerate(_TASKS) if table == f"{start}_MAPPING_NAMES"]
    return exact[0] if exact else next(i for i, (start, _) in enumerate(_TASKS) if table.startswith(start))


@cache
def _listed() -> dict[tuple[str, str], Architecture]:
    found: dict[tuple[str, str], Architecture] = {}
    for task, table in _tables():
        for model_type, value in table.items():
            for class_name in (value,) if isinstance(value, str) else value:
                module = _module_of(class_name) or _guess_module(model_type)
                found.setdefault((model_type, class_name), Architecture(model_type, class_name, module, task))
    return found


@cache
def _defaults() -> dict[str, Architecture]:
    first: dict[str, Architecture] = {}
    for architecture in _listed().values():
        first.setdefault(architecture.model_type, architecture)
    return first


def _module_of(class_name: str) -> str | None:
    """Import path of the module that defines a public class, without importing it."""
    short = getattr(transformers, "_class_to_module").get(class_name, "")  # noqa: B009 - the lazy module's own table
    return f"transformers.{short}" if ".modeling_" in short else None


def _guess_module(model_type: str) -> str:
    folder = configuration_auto.model_type_to_module_name(model_type)
    return f"transformers.models.{folder}.modeling_{folder}"


def _folder(module: str) -> str:
    return module.split(".")[2]


def _type_folder(model_type: str) -> str:
    return str(configuration_auto.model_type_to_module_name(model_type))


def _task_by_suffix(class_name: str) -> Task:
    return next((task for suffix, task in _SUFFIXES if class_name.endswith(suffix)), Task.FEATURES)
