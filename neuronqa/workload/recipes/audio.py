"""Recipes of speech and sound families."""

from __future__ import annotations

from typing import Any, Final

import torch

from neuronqa.workload.architectures import Architecture, Task
from neuronqa.workload.inputs import placeholders
from neuronqa.workload.inputs.scene import Scene
from neuronqa.workload.recipes.recipe import Recipe, defaults

SPECTRUM_FRAMES: Final = 32
CHROMA_FRAMES: Final = 8
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
    decoder, text = scene.read("decoder_config"), scene.read("text_config")
    size = scene.count("vocab_size", of=text, default=32) if text is not None else None
    given["input_ids"] = scene.ids("input_ids", scene.batch, scene.tokens, vocabulary=size)
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


def _books(scene: Scene) -> int:
    decoder = scene.read("decoder")
    return (
        scene.count("num_codebooks", of=decoder, default=4)
        if decoder is not None
        else scene.count("num_codebooks", default=4)
    )


def _codes(scene: Scene, name: str) -> Any:
    decoder = scene.read("decoder") or scene.config
    size = scene.count("vocab_size", of=decoder, default=32)
    return scene.ids(name, scene.batch * _books(scene), scene.tokens, vocabulary=size)


def _codes_alone(scene: Scene, given: dict[str, Any]) -> None:
    """Codes of all books in one row; the decoder still attends to a description."""
    given["input_ids"] = _codes(scene, "codes")
    given["encoder_hidden_states"] = scene.noise("encoder", scene.batch, scene.tokens, scene.hidden)


def _codes_described(scene: Scene, given: dict[str, Any]) -> None:
    """The text describes, the codes are the decoder's own: a codec made them."""
    given.pop("input_values", None)
    given["decoder_input_ids"] = _codes(scene, "codes")
    if "input_features" in given:
        given["input_features"] = scene.noise(
            "chroma", scene.batch, CHROMA_FRAMES, scene.count("num_chroma", default=12)
        )


def _codes_labels(scene: Scene, given: dict[str, Any]) -> dict[str, Any] | None:
    del given
    decoder = scene.read("decoder") or scene.config
    size = scene.count("vocab_size", of=decoder, default=32)
    if "labels" not in scene.parameters:
        return None
    return {"labels": scene.ids("labels", scene.batch, scene.tokens, _books(scene), vocabulary=size)}


def _states(scene: Scene, given: dict[str, Any]) -> None:
    """Without its nets before and after, the model takes hidden states."""
    _speaker(scene, given)
    if scene.class_name == "SpeechT5Model":
        for name in ("input_values", "decoder_input_values"):
            given[name] = scene.noise(name, scene.batch, scene.tokens, scene.hidden)


RECIPES: Final[tuple[Recipe, ...]] = (
    Recipe(
        families=("speecht5",),
        reason="speech is its own label, and has a speaker",
        inputs=_states,
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
    Recipe(
        families=("musicgen_decoder", "musicgen_melody_decoder"),
        reason="codes of all books come in one row",
        inputs=_codes_alone,
        labels=_codes_labels,
        completion={"decoder_start_token_id": 2048},
    ),
    Recipe(
        families=("musicgen", "musicgen_melody"),
        reason="the decoder's tokens are codes of sound",
        inputs=_codes_described,
        labels=_codes_labels,
    ),
    Recipe(families=("xcodec", "xcodec2"), reason="sound is mono, with its channel", inputs=_mono),
    Recipe(families=("clvp",), reason="the conditioning encoder has a width of its own", inputs=_features),
    Recipe(families=("qwen3_asr",), reason="frames come in whole windows", inputs=_whole_windows),
)
