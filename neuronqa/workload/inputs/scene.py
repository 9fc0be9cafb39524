"""What is known of a built model when its inputs are made."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig

from neuronqa.workload.architectures import Task
from neuronqa.workload.levels import BATCH
from neuronqa.workload.meaning import Meaning, meaning
from neuronqa.workload.weights import generator

AMPLITUDE: Final = 0.5
"""Standard deviation of synthetic pixels and sounds."""
_VISION: Final = ("vision_config", "vision_encoder_config", "image_config", "vit_config", "visual_config", "encoder")
_AUDIO: Final = ("audio_config", "audio_encoder_config", "speech_config", "encoder_config", "sound_config", "encoder")
_NESTS: Final = ("thinker_config", "vlm_config", "mllm_config")
"""Sub-configs that hold the towers of the part that is trained."""
DEFAULT_VOCABULARY: Final = 100


@dataclass(frozen=True)
class Scene:
    """Facts of one model for which inputs are synthesised. Every draw is named, so that none depends on another."""

    model: nn.Module
    config: PreTrainedConfig
    task: Task
    class_name: str
    tokens: int
    seed: int
    batch: int = BATCH

    @cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Arguments of `forward` that have a name of their own."""
        found = inspect.signature(self.model.forward).parameters
        loose = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        return {name: p for name, p in found.items() if p.kind not in loose}

    @property
    def model_type(self) -> str:
        return str(self.config.model_type)

    @cached_property
    def text(self) -> PreTrainedConfig:
        """The config of the text tower; of a decoder where there are two."""
        for decoder in (None, True):
            try:
                found = self.config.get_text_config(decoder=decoder)
            except (ValueError, AttributeError, TypeError):
                continue
            if found is not None:
                return found
        return self.config

    @property
    def encodes(self) -> bool:
        """Is there an encoder whose states a decoder reads?"""
        told = [getattr(config, "is_encoder_decoder", None) for config in (self.config, self.text)]
        return any(told) or self.read("decoder", "decoder_config") is not None

    @cached_property
    def vision(self) -> PreTrainedConfig:
        return self._tower(_VISION, sign="image_size") or self.config

    @cached_property
    def audio(self) -> PreTrainedConfig:
        return self._tower(_AUDIO, sign="") or self.config

    def _tower(self, names: tuple[str, ...], *, sign: str) -> PreTrainedConfig | None:
        homes = [self.config, *(h for n in _NESTS if isinstance(h := getattr(self.config, n, None), PreTrainedConfig))]
        for home in homes:
            for name in names:
                found = getattr(home, name, None)
                if not isinstance(found, PreTrainedConfig):
                    continue
                if name != "encoder" or hasattr(found, "image_size") == bool(sign):
                    return found
        return None

    @cached_property
    def vocabulary(self) -> int:
        """Token ids are drawn below this."""
        sizes = [getattr(c, n, None) for c in (self.text, self.config) for n in ("vocab_size", "n_vocab")]
        counted = [int(s) for s in sizes if isinstance(s, int) and s > 1]
        return min(counted, default=DEFAULT_VOCABULARY)

    @cached_property
    def reserved(self) -> frozenset[int]:
        """Ids of special tokens: never drawn at random."""
        return frozenset(_token_ids(self.config.to_dict()))

    def read(self, *names: str, of: PreTrainedConfig | None = None, default: Any = None) -> Any:
        """The first of the fields that is there and not None."""
        source = of if of is not None else self.config
        for name in names:
            value = getattr(source, name, None)
            if value is not None:
                return value
        return default

    def count(self, *names: str, of: PreTrainedConfig | None = None, default: int) -> int:
        """Like :meth:`read`, for a positive int; the largest of a list."""
        value = self.read(*names, of=of)
        if isinstance(value, list | tuple) and value and all(isinstance(v, int) for v in value):
            value = max(value)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default

    def noise(self, name: str, *shape: int) -> Tensor:
        return AMPLITUDE * torch.randn(shape, generator=generator(self.seed, name))

    def uniform(self, name: str, *shape: int) -> Tensor:
        return torch.rand(shape, generator=generator(self.seed, name))

    def integers(self, name: str, below: int, *shape: int) -> Tensor:
        return torch.randint(0, max(1, below), shape, generator=generator(self.seed, name))

    def ids(self, name: str, *shape: int, vocabulary: int | None = None) -> Tensor:
        """Token ids that are no special tokens."""
        size = vocabulary or self.vocabulary
        plain = [i for i in range(min(size, 4096)) if i not in self.reserved] or list(range(size))
        return torch.tensor(plain)[self.integers(name, len(plain), *shape)]

    @property
    def hidden(self) -> int:
        return self.count("hidden_size", "d_model", "n_embd", "dim", "embed_dim", of=self.text, default=64)


@dataclass(frozen=True)
class Form:
    """One of the forms an argument comes in."""

    label: str
    make: Callable[[], Any]


def _token_ids(fields: Mapping[str, Any]) -> list[int]:
    found: list[int] = []
    for name, value in fields.items():
        if isinstance(value, dict):
            found += _token_ids(value)
        elif isinstance(name, str) and meaning(name) is Meaning.TOKEN:
            found += [v for v in (value if isinstance(value, list) else [value]) if _is_id(v)]
    return found


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
