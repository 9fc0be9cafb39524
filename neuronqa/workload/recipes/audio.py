"""Recipes of speech and sound families."""

from __future__ import annotations

from typing import Any, Final

import torch

from neuronqa.workload.architectures import Architecture, Task
from neuronqa.workload.inputs import placeholders
from neuronqa.workload.inputs.scene import Scene
from neuronqa.workload.recipes.recipe import Recipe, defaults

SPECTRUM_FRAMES: Final = 32
WINDOW_TOKENS: Final = 52
"""Tokens of two samples of two windows each."""


def _spectrogram_labels(scene: Scene, given: dict[str, Any]) -> dict[str, Any] | None:
    del given
    if scene.task is not Task.TEXT_TO_SOUND:
        return None
    return {"labels": scene.noise("labels", scene.batch, SPECTRUM_FRAMES, scene.count("num_mel_bins", default=80))}


def _speaker(scene: Scene, given: dict[str, Any]) -> None:
    if "speaker_embeddings" in scene.parameters and scene.task is Task.TEXT_TO_SOUND:
        width = scene.count("speaker_embedding_dim", default=512)
        given["speaker_embeddings"] = scene.noise("speaker", scene.batch, width)
        given["attention_mask"] = torch.ones_like(given["input_ids"])


def _streams(scene: Scene, given: dict[str, Any]) -> None:
    """One stream of text beside those of the audio codes."""
    books = 1 + scene.count("num_codebooks", default=32)
    given["input_ids"] = scene.ids("input_ids", scene.batch, scene.tokens, books, vocabulary=32)


def _streams_labels(scene: Scene, given: dict[str, Any]) -> dict[str, Any] | None:
    del given
    return {"labels": scene.ids("labels", scene.batch, scene.tokens)} if "labels" in scene.parameters else None


def _with_adapters(architecture: Architecture) -> dict[str, Any]:
    vocabulary = {"vocab_size": 32} if "CTC" in architecture.class_name else {}
    return defaults(architecture.model_type) | vocabulary


def _mono(scene: Scene, given: dict[str, Any]) -> None:
    given["input_values"] = scene.noise("sound", scene.batch, 1, 16000)


def _features(scene: Scene, given: dict[str, Any]) -> None:
    decoder = scene.read("decoder_config")
    given["input_features"] = scene.noise("sound", scene.batch, scene.count("feature_size", of=decoder, default=80), 64)


def _whole_windows(scene: Scene, given: dict[str, Any]) -> None:
    """Frames come in whole windows."""
    audio = scene.audio
    window = 2 * scene.count("n_window", of=audio, default=50)
    given["input_features"] = scene.noise(
        "sound", scene.batch, scene.count("num_mel_bins", of=audio, default=128), 2 * window
    )
    given["input_features_mask"] = torch.ones(scene.batch, 2 * window, dtype=torch.long)
    given["input_ids"] = placeholders.insert(scene, given["input_ids"], "audio", WINDOW_TOKENS)


RECIPES: Final[tuple[Recipe, ...]] = (
    Recipe(
        families=("speecht5",),
        reason="speech is its own label, and has a speaker",
        inputs=_speaker,
        labels=_spectrogram_labels,
    ),
    Recipe(
        families=("kyutai_speech_to_text",),
        reason="text and audio codes are streams of one input",
        inputs=_streams,
        labels=_streams_labels,
    ),
    Recipe(
        families=("wav2vec2-bert", "wav2vec2-conformer"),
        reason="the class leaves the vocabulary of CTC open",
        example=_with_adapters,
    ),
    Recipe(families=("xcodec", "xcodec2"), reason="sound is mono, with its channel", inputs=_mono),
    Recipe(families=("clvp",), reason="the conditioning encoder has a width of its own", inputs=_features),
    Recipe(families=("qwen3_asr",), reason="frames come in whole windows", inputs=_whole_windows),
)
