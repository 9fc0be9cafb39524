"""Recipes of speech and sound families."""

from __future__ import annotations

from typing import Any, Final

import torch

from neuronqa.workload.architectures import Architecture, Task
from neuronqa.workload.inputs import placeholders, sound
from neuronqa.workload.inputs.adaptation import Adaptation
from neuronqa.workload.inputs.scene import Scene
from neuronqa.workload.recipes.recipe import Recipe, Shrunk, defaults, fixed, kept

SPECTRUM_FRAMES: Final = 32
CHROMA_FRAMES: Final = 8
TEXT_TOKENS: Final = 4
SPEECH_FRAMES: Final = 4
FILTERS: Final = 8
CLIP_STEPS: Final = 3
CHANNELS: Final = 64
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


def _speech_vocabulary(architecture: Architecture) -> dict[str, Any]:
    """Speech is read with the tokens it is written in."""
    fields = defaults(architecture.model_type)
    if isinstance(fields.get("speech_config"), dict):
        fields["speech_config"]["vocab_size"] = fields["decoder_config"]["vocab_size"]
    return fields


def _deepest(shrunk: Shrunk) -> None:
    """Features are as wide as the deepest stage."""
    small = shrunk.small
    small["hidden_size"] = small["patch_embeds_hidden_size"] * 2 ** (len(small["depths"]) - 1)


def _features(scene: Scene, given: dict[str, Any]) -> None:
    decoder, text = scene.read("decoder_config"), scene.read("text_config")
    size = scene.count("vocab_size", of=text, default=32) if text is not None else None
    given["input_ids"] = scene.ids("input_ids", scene.batch, scene.tokens, vocabulary=size)
    given["input_features"] = scene.noise("sound", scene.batch, scene.count("feature_size", of=decoder, default=80), 64)


def _heard_width(architecture: Architecture) -> dict[str, Any]:
    fields = defaults(architecture.model_type)
    fields["audio_config"]["output_dim"] = fields["text_config"]["hidden_size"]
    return fields


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


def _no_labels(scene: Scene, given: dict[str, Any]) -> dict[str, Any] | None:
    del scene, given
    return {}


def _spoken(scene: Scene, given: dict[str, Any]) -> None:
    """The text goes on with speech: its first token, and one for each frame."""
    ids = given["input_ids"]
    ids[:, TEXT_TOKENS] = scene.count("audio_bos_token_id", default=1)
    ids[:, TEXT_TOKENS + 1 : TEXT_TOKENS + 1 + SPEECH_FRAMES] = scene.count("audio_latent_token_id", default=2)
    given["input_ids"] = ids[:, : TEXT_TOKENS + 1 + SPEECH_FRAMES]
    if "labels" not in scene.parameters:
        given["audio_latents"] = scene.noise(
            "latents", scene.batch, SPEECH_FRAMES, scene.count("latent_dim", default=32)
        )


def _spoken_labels(scene: Scene, given: dict[str, Any]) -> dict[str, Any] | None:
    del given
    if "labels" not in scene.parameters:
        return None
    return {"labels": scene.noise("labels", scene.batch, SPEECH_FRAMES, scene.count("latent_dim", default=32))}


def _prosody(scene: Scene, given: dict[str, Any]) -> dict[str, Any] | None:
    """Two frames a token."""
    del given
    model = scene.read("model_config") or scene.config
    tokens, bins = scene.tokens, scene.count("num_mel_bins", of=model, default=80)
    return {
        "spectrogram_labels": scene.noise("spectrogram", scene.batch, 2 * tokens, bins),
        "duration_labels": torch.full((scene.batch, tokens), 2),
        "pitch_labels": scene.noise("pitch", scene.batch, tokens, 1),
        "energy_labels": scene.noise("energy", scene.batch, tokens, 1),
    }


def _of_own_vocabulary(scene: Scene, given: dict[str, Any]) -> None:
    model = scene.read("model_config") or scene.config
    size = scene.count("vocab_size", of=model, default=64)
    given["input_ids"] = scene.ids("input_ids", scene.batch, scene.tokens, vocabulary=size)


def _masked_wave(scene: Scene, given: dict[str, Any]) -> None:
    given["input_values"] = scene.noise("sound", scene.batch, 1, sound.SAMPLES)
    given["padding_mask"] = torch.ones(scene.batch, sound.SAMPLES, dtype=torch.long)


def _windows_of_queries(scene: Scene, given: dict[str, Any]) -> None:
    """Each window of frames leaves a few queries; the mask would be of those."""
    given.pop("input_features_mask", None)
    heard = given.get("input_features")
    if isinstance(heard, torch.Tensor):
        window = scene.count("window_size", default=15)
        queries = window // scene.count("downsample_rate", default=5)
        count = scene.batch * -(-heard.shape[1] // window) * queries
        given["input_ids"] = placeholders.insert(scene, given["input_ids"], "audio", count)


def _channels_of_codes(scene: Scene, given: dict[str, Any]) -> None:
    """The text has a vocabulary of its own; codes of all channels come side by side."""
    text, decoder = scene.read("encoder_config"), scene.read("decoder_config")
    given["input_ids"] = scene.ids(
        "input_ids", scene.batch, scene.tokens, vocabulary=scene.count("vocab_size", of=text, default=64)
    )
    channels, size = (
        scene.count("num_channels", of=decoder, default=9),
        scene.count("vocab_size", of=decoder, default=64),
    )
    given["decoder_input_ids"] = scene.ids("codes", scene.batch, scene.tokens, channels, vocabulary=size)


def _channels_labels(scene: Scene, given: dict[str, Any]) -> dict[str, Any] | None:
    if "labels" not in scene.parameters:
        return None
    return {"labels": given["decoder_input_ids"].transpose(1, 2).reshape(-1, scene.tokens)}


def _spoken_codes(scene: Scene, given: dict[str, Any]) -> None:
    """Codes of speech beside the text, with their places in it."""
    if "audio_input_ids" in scene.parameters:
        books = scene.count("num_codebooks", default=8)
        given["audio_input_ids"] = scene.integers("codes", 8, scene.batch, SPEECH_FRAMES, books)
        given["audio_input_ids_mask"] = torch.ones(scene.batch, SPEECH_FRAMES, dtype=torch.bool)
        given["input_ids"] = placeholders.insert(scene, given["input_ids"], "audio", scene.batch * SPEECH_FRAMES)


def _encoded_wave(scene: Scene, given: dict[str, Any]) -> None:
    given["hidden_states"] = scene.noise("sound", scene.batch, 1, sound.SAMPLES)


def _waves_only(scene: Scene, given: dict[str, Any]) -> None:
    """Its encoder hears waves or features, not both."""
    del scene
    given.pop("input_features", None)


def _own_bins(scene: Scene, given: dict[str, Any]) -> None:
    """The tower of a sound has its bins in its own config."""
    if isinstance(given.get("input_features"), torch.Tensor):
        given["input_features"] = scene.noise(
            "sound", scene.batch, sound.FRAMES, scene.count("num_mel_bins", default=128)
        )


def _bins_within(scene: Scene, given: dict[str, Any]) -> None:
    """Two encoders hear the same sound."""
    if isinstance(given.get("input_features"), torch.Tensor):
        bins = scene.count("num_mel_bins", of=scene.read("asr_config", of=scene.audio), default=128)
        given["input_features"] = scene.noise("sound", scene.batch, sound.FRAMES, bins)


def _heard_clips(scene: Scene, given: dict[str, Any]) -> None:
    """A placeholder for each step of a clip."""
    if "input_values" not in given:
        return
    hop = int(scene.audio.hop_length)
    samples = CLIP_STEPS * hop
    given["input_values"] = scene.noise("sound", scene.batch, 1, samples)
    given["padding_mask"] = torch.ones(scene.batch, samples, dtype=torch.bool)
    given["input_ids"] = placeholders.insert(scene, given["input_ids"], "audio", scene.batch * CLIP_STEPS)


def _true_frames(scene: Scene, given: dict[str, Any]) -> None:
    del scene
    if "input_features_mask" in given:
        given["input_features_mask"] = given["input_features_mask"].bool()


def _embedded_sound(scene: Scene, given: dict[str, Any]) -> None:
    given["input_features"] = scene.noise("sound", scene.batch, scene.tokens, scene.hidden)


def _delayed(scene: Scene, given: dict[str, Any]) -> None:
    """Norms are conditioned on the delay of the transcription."""
    given["t_cond"] = scene.noise("delay", 1, scene.hidden)


def _blank_first(scene: Scene, given: dict[str, Any]) -> None:
    """The decoder reads the labels after a blank."""
    given["decoder_input_ids"] = scene.ids("decoder_input_ids", scene.batch, scene.tokens + 1)


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
    Recipe(
        families=("nemotron3_5_asr", "nemotron_asr_streaming"),
        reason="upstream gives it the loss of a language model, which does not fit its outputs",
        labels=_no_labels,
        adaptation=Adaptation(extra=frozenset({"decoder_input_ids"})),
    ),
    Recipe(
        families=("parakeet_rnnt", "parakeet_tdt"),
        reason="the decoder reads one token more than it is asked for",
        inputs=_blank_first,
    ),
    Recipe(
        families=("vibevoice_acoustic_tokenizer_encoder",), reason="it calls a wave its states", inputs=_encoded_wave
    ),
    Recipe(
        families=("vibevoice",),
        reason="a mask tells how long each clip is",
        version=2,
        inputs=_heard_clips,
    ),
    Recipe(families=("gemma3n",), reason="the mask of frames is turned over", version=2, inputs=_true_frames),
    Recipe(
        families=("pop2piano",),
        reason="sound takes the place of text, as wide as its tokens",
        version=2,
        inputs=_embedded_sound,
        adaptation=Adaptation(without=frozenset({"input_ids"})),
    ),
    Recipe(
        families=("pe_audio_video", "pe_audio_video_encoder"),
        reason="a film has both sound and pictures",
        version=2,
        adaptation=Adaptation(extra=frozenset({"pixel_values_videos"}), forms={"input_values": "wave-mono"}),
    ),
    Recipe(families=("speech-encoder-decoder",), reason="waves or features, not both", inputs=_waves_only),
    Recipe(families=("nemotron3_5_transcribe_audio",), reason="bins are its own", inputs=_own_bins),
    Recipe(
        families=("nemo_speechlm",),
        reason="bins are those of the speech encoder within",
        version=2,
        inputs=_bins_within,
    ),
    Recipe(families=("voxtral_realtime_text",), reason="norms are conditioned on a delay", inputs=_delayed),
    Recipe(
        families=("gradium_phonon_tts", "pocket_tts"),
        reason="frames of speech follow the text",
        inputs=_spoken,
        labels=_spoken_labels,
    ),
    Recipe(
        families=("fastspeech2_conformer", "fastspeech2_conformer_with_hifigan"),
        reason="training wants the prosody",
        inputs=_of_own_vocabulary,
        labels=_prosody,
    ),
    Recipe(
        families=("dia",),
        reason="text and codes have vocabularies of their own",
        inputs=_channels_of_codes,
        labels=_channels_labels,
    ),
    Recipe(families=("higgs_audio_v2",), reason="codes of speech are an input of their own", inputs=_spoken_codes),
    Recipe(families=("omniasr_ctc",), reason="the loss reads the mask of the sound", inputs=_masked_wave),
    Recipe(
        families=("granite_speech", "granite_speech_plus"),
        reason="its mask is of features, not of frames",
        inputs=_windows_of_queries,
    ),
    Recipe(
        families=(
            "vibevoice_acoustic_tokenizer",
            "vibevoice_acoustic_tokenizer_encoder",
            "vibevoice_acoustic_tokenizer_decoder",
        ),
        reason="filters double at each of six stages",
        shrink=fixed(num_filters=FILTERS),
    ),
    Recipe(
        families=("qwen2_5_omni_bigvgan",),
        reason="channels halve at each of six stages",
        shrink=fixed(upsample_initial_channel=CHANNELS),
    ),
    Recipe(
        families=("wavtokenizer", "wavtokenizer_encoder"),
        reason="group norms have 32 groups",
        shrink=fixed(decoder_hidden_size=CHANNELS),
    ),
    Recipe(families=("xcodec",), reason="sound is mono, with its channel", inputs=_mono),
    Recipe(
        families=("clvp",),
        reason="the conditioning encoder has a width of its own, and speech the vocabulary it is written in",
        inputs=_features,
        example=_speech_vocabulary,
    ),
    Recipe(
        families=("clap", "clap_audio_model"),
        reason="sound is a picture of one channel",
        adaptation=Adaptation(forms={"input_features": "clap"}),
    ),
    Recipe(families=("clap_audio_model",), reason="features are as wide as the deepest stage", shrink=_deepest),
    Recipe(
        families=("fastspeech2_conformer_hifigan",),
        reason="bins are counted, not a width",
        shrink=kept("model_in_dim"),
    ),
    Recipe(
        families=("qwen3_asr",),
        reason="frames come in whole windows; the class's own widths do not fit each other",
        inputs=_whole_windows,
        example=_heard_width,
    ),
)
