"""Targets by task: what turns a head's outputs into its own loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import Tensor
from transformers import PreTrainedConfig

from neuronqa.workload.architectures import Task
from neuronqa.workload.inputs import vision
from neuronqa.workload.inputs.scene import Scene

BOXES: Final = ((0.5, 0.5, 0.2, 0.2), (0.3, 0.3, 0.2, 0.2))
"""Centre, width and height of two objects, relative to the image."""
CTC_LENGTH: Final = 3
CTC_SYMBOLS: Final = 20

_LANGUAGE: Final = frozenset(
    {Task.CAUSAL_LM, Task.MASKED_LM, Task.SEQ2SEQ_LM, Task.MULTIMODAL_LM, Task.PRETRAINING, Task.SPEECH_SEQ2SEQ}
)
_CLASSES: Final = frozenset(
    {
        Task.SEQUENCE_CLASSIFICATION,
        Task.IMAGE_CLASSIFICATION,
        Task.VIDEO_CLASSIFICATION,
        Task.AUDIO_CLASSIFICATION,
        Task.AUDIO_XVECTOR,
    }
)


def targets(scene: Scene, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Label arguments for the head, or none where it takes none."""
    names = scene.parameters
    if "start_positions" in names and "end_positions" in names:
        return {"start_positions": torch.tensor([1, 2]), "end_positions": torch.tensor([3, 4])}
    if "class_labels" in names and "mask_labels" in names:
        return _masks(scene)
    found: dict[str, Any] = {}
    if "next_sentence_label" in names:
        found["next_sentence_label"] = torch.tensor([0, 1])
    if "sentence_order_label" in names:
        found["sentence_order_label"] = torch.tensor([0, 1])
    if "labels" in names:
        labels = _labels(scene, inputs)
        return found if labels is None else {"labels": labels, **found}
    return {"return_loss": True} if "return_loss" in names else found


def _labels(scene: Scene, inputs: Mapping[str, Any]) -> Any:
    ids = inputs.get("input_ids")
    classes, (h, w), b = labels_of(scene), vision.side(scene), scene.batch
    match scene.task:
        case Task.OBJECT_DETECTION | Task.UNIVERSAL_SEGMENTATION:
            return [_objects(scene, index) for index in range(b)]
        case Task.MULTIPLE_CHOICE | Task.NEXT_SENTENCE:
            return torch.tensor([0, 1])
        case Task.TOKEN_CLASSIFICATION if isinstance(ids, Tensor):
            return scene.integers("labels", classes, *ids.shape[:2])
        case Task.SEMANTIC_SEGMENTATION:
            return scene.integers("labels", classes, b, h, w)
        case Task.DENSE_PREDICTION:
            return scene.uniform("labels", b, h, w)
        case Task.CTC:
            return 1 + scene.integers("labels", min(scene.vocabulary - 1, CTC_SYMBOLS), b, CTC_LENGTH)
        case Task.VISUAL_QUESTION_ANSWERING if not isinstance(ids, Tensor) or scene.class_name.startswith("Vilt"):
            return scene.uniform("labels", b, classes)
        case task if task in _CLASSES:
            return _class_labels(scene, classes)
        case task if task in _LANGUAGE or task is Task.VISUAL_QUESTION_ANSWERING:
            return _token_labels(scene, ids)
        case Task.TRANSDUCER | Task.TEXT_TO_SOUND:
            return scene.ids("labels", b, scene.tokens)
        case _:
            return None


def labels_of(scene: Scene) -> int:
    return scene.count("num_labels", default=2)


def _class_labels(scene: Scene, classes: int) -> Tensor:
    """The kind of loss is what the config says; where it says nothing, one label alone is a regression."""
    problem = scene.read("problem_type")
    if problem == "regression" or (problem is None and scene.task is Task.SEQUENCE_CLASSIFICATION and classes == 1):
        return scene.uniform("labels", scene.batch, *([] if classes == 1 else [classes]))
    if problem == "multi_label_classification":
        return (scene.uniform("labels", scene.batch, classes) > 0.5).float()
    return scene.integers("labels", classes, scene.batch)


def _token_labels(scene: Scene, ids: Any) -> Any:
    """The text itself for one stack of layers, a text of its own for a decoder."""
    if "decoder_input_ids" in scene.parameters and scene.encodes:
        decoder = scene.read("decoder", "decoder_config")
        size = scene.read("vocab_size", of=decoder) if isinstance(decoder, PreTrainedConfig) else None
        return scene.ids("labels", scene.batch, scene.tokens, vocabulary=size)
    if isinstance(ids, Tensor):
        return ids.clone()
    return scene.ids("labels", scene.batch, scene.tokens) if scene.task is not Task.PRETRAINING else None


def _objects(scene: Scene, index: int) -> dict[str, Tensor]:
    h, w = vision.side(scene)
    masks = (scene.uniform(f"masks{index}", len(BOXES), h, w) > 0.5).float()
    return {"class_labels": torch.tensor([0, 1]), "boxes": torch.tensor(BOXES), "masks": masks}


def _masks(scene: Scene) -> dict[str, Any]:
    h, w = vision.side(scene)
    masks = [(scene.uniform(f"masks{index}", 2, h, w) > 0.5).float() for index in range(scene.batch)]
    return {"mask_labels": masks, "class_labels": [torch.tensor([0, 1]) for _ in range(scene.batch)]}
