"""Arguments made of sound: waveforms, spectrograms, codes."""

from __future__ import annotations

from typing import Final

import torch

from neuronqa.workload.inputs.scene import Form, Scene

SAMPLES: Final = 9600
"""0.6 seconds at 16 kHz: enough for every convolutional front end."""
FRAMES: Final = 128
CODES: Final = 16
_MEL: Final = (
    "num_mel_bins",
    "input_feat_per_channel",
    "input_feat_size",
    "feature_projection_input_dim",
    "mel_bins",
    "n_mels",
    "feature_size",
    "input_dim",
    "num_features",
    "input_size",
)


def mel(scene: Scene) -> int:
    own = scene.count(*_MEL, of=scene.audio, default=0)
    return own or scene.count(*_MEL[:4], "input_dim", default=80)


def waveform(scene: Scene) -> list[Form]:
    if scene.model_type == "audio-spectrogram-transformer":
        return [Form("frames", lambda: scene.noise("sound", scene.batch, scene.config.max_length, mel(scene)))]
    channels = scene.count("audio_channels", "num_channels", default=1)
    b = scene.batch
    return [
        Form("wave", lambda: scene.noise("sound", b, SAMPLES)),
        Form("wave-channels", lambda: scene.noise("sound", b, channels, SAMPLES)),
        Form("wave-mono", lambda: scene.noise("sound", b, 1, SAMPLES)),
        *spectrogram(scene),
    ]


def spectrogram(scene: Scene) -> list[Form]:
    """Frames by mel bins, or the other way round where a table of positions says how many frames there must be."""
    m, b = mel(scene), scene.batch
    positions = scene.count("max_source_positions", of=scene.audio, default=0)
    whisper = 0 < positions <= 1500 or "whisper" in type(scene.audio).__name__.lower()
    length = 2 * positions if 0 < positions <= 1500 else FRAMES

    def form(label: str, *shape: int) -> Form:
        return Form(label, lambda: scene.noise("sound", *shape))

    first = [form("bins-frames", b, m, length), form("frames-bins", b, FRAMES, m)]
    if not (whisper or scene.model_type == "lasr_encoder"):
        first.reverse()
    return [
        *first,
        form("bins-128", b, m, FRAMES),
        form("image", b, 1, 256, m),
        form("clap", b, 1, 1024, 64),
        form("thirty-seconds", 1, m, 3000),
        form("wave", b, SAMPLES),
        form("wave-mono", b, 1, SAMPLES),
        form("frames-two-bins", b, FRAMES, 2 * m),
        form("frames-256", b, 256, m),
    ]


def frames_mask(scene: Scene) -> list[Form]:
    return [Form("ones", lambda: torch.ones(scene.batch, FRAMES, dtype=torch.long))]


def codes(scene: Scene) -> list[Form]:
    books = scene.count("num_codebooks", "num_quantizers", "n_codebooks", default=4)
    return [
        Form("books", lambda: scene.integers("codes", CODES, scene.batch, books, scene.tokens)),
        Form("flat", lambda: scene.integers("codes", CODES, scene.batch, scene.tokens)),
    ]


def vocoder_input(scene: Scene) -> list[Form]:
    bins = scene.count("model_in_dim", default=80)
    other = scene.count("num_mel_bins", default=80)
    return [
        Form("frames-bins", lambda: scene.noise("sound", scene.batch, 32, bins)),
        Form("bins-frames", lambda: scene.noise("sound", scene.batch, other, 32)),
    ]


def mel_frames(scene: Scene) -> list[Form]:
    width = scene.count("input_feat_size", default=FRAMES)
    return [Form("frames", lambda: scene.noise("audio_mel", scene.batch, FRAMES, width))]


def mel_frames_mask(scene: Scene) -> list[Form]:
    return [Form("none-hidden", lambda: torch.zeros(scene.batch, FRAMES, dtype=torch.bool))]
