"""Small decoders that go on from each class of key-value cache, made before the first token as servers do.

A cache is handed to the model, not asked of it, so that static ones are used as well; sliding layers are those of
models that have a window. Needs transformers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, Gemma2Config, LlamaConfig, MistralConfig, PreTrainedConfig
from transformers.cache_utils import Cache, DynamicCache, StaticCache

LENGTH = 24
"""Of the prompt; the window of sliding layers is shorter, so that the first decoded token already drops a key."""
WINDOW = 16
ROOM = 40
SIZES: dict[str, Any] = {
    "vocab_size": 256,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 64,
    "initializer_range": 0.2,
}
CONFIGS: dict[str, Callable[[], PreTrainedConfig]] = {
    "llama": lambda: LlamaConfig(**SIZES),
    "mistral": lambda: MistralConfig(**SIZES, sliding_window=WINDOW),
    "gemma2": lambda: Gemma2Config(**SIZES, sliding_window=WINDOW),
}
CACHES: dict[str, Callable[[PreTrainedConfig], Cache]] = {
    "dynamic": lambda config: DynamicCache(config=config),
    "dynamic-plain": lambda _config: DynamicCache(),
    "static": lambda config: StaticCache(config=config, max_cache_len=ROOM),
}


class Decoder(nn.Module):
    """A causal language model that makes its own cache where it is given none."""

    def __init__(self, family: str, cache: str) -> None:
        super().__init__()
        config = CONFIGS[family]()
        self.model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
        self._make: Callable[[], Cache] = lambda: CACHES[cache](config)

    def forward(self, input_ids: Tensor, past_key_values: Cache | None = None, use_cache: bool = True) -> Any:
        cache = self._make() if past_key_values is None else past_key_values
        return self.model(input_ids=input_ids, past_key_values=cache, use_cache=use_cache)


def decoder(family: str, cache: str) -> tuple[nn.Module, dict[str, Any], Callable[[Any], Tensor]]:
    """A decoder of `family` that goes on from a cache of class `cache`."""
    return Decoder(family, cache), {"input_ids": torch.randint(0, 256, (2, LENGTH))}, _loss


def _loss(outputs: Any) -> Tensor:
    logits: Tensor = outputs.logits
    return logits.float().square().mean()
