"""An entry in the making: everything but its rank and downloads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MODALITIES: Final = {
    "automatic-speech-recognition": "audio",
    "audio-classification": "audio",
    "text-to-speech": "audio",
    "audio-to-audio": "audio",
    "image-classification": "vision",
    "object-detection": "vision",
    "image-segmentation": "vision",
    "zero-shot-image-classification": "vision",
    "zero-shot-object-detection": "vision",
    "depth-estimation": "vision",
    "mask-generation": "vision",
    "keypoint-detection": "vision",
    "image-to-image": "vision",
    "video-classification": "vision",
    "text-to-image": "vision",
    "image-text-to-text": "multimodal",
    "visual-question-answering": "multimodal",
    "document-question-answering": "multimodal",
    "visual-document-retrieval": "multimodal",
    "any-to-any": "multimodal",
    "time-series-forecasting": "time-series",
    "reinforcement-learning": "other",
    "robotics": "other",
    "tabular-classification": "other",
}
"""Tasks that are not text."""


@dataclass(slots=True, kw_only=True)
class Draft:
    """Facts of an entry; `popularity` orders drafts of one modality, its scale has no meaning."""

    label: str
    """Middle part of the id, made of type, size and role."""
    popularity: float
    library: str = "transformers"
    task: str = ""
    model_type: str = ""
    class_name: str = ""
    text: str | None = None
    """Stored config text."""
    absence: str = ""
    custom_code: bool = False
    quantization: str = ""
    parameters: int | None = None
    base: int | None = None
    """Index of the base model's draft, where the entry declares it."""

    @property
    def modality(self) -> str:
        return modality(self.task)


def modality(task: str) -> str:
    """What kind of data a task is about; a task the Hub does not know is about text."""
    return MODALITIES.get(task, "text")
