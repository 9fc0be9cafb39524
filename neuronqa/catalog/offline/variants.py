"""Changes that make another model of the same class: each moves one thing that decides kernels or graph.

A move takes a config and returns a changed copy, or None where it does not apply. Whether the class accepts the result
is for the caller to ask.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final

from neuronqa.catalog.offline.draws import Draws

Config = dict[str, Any]
Move = Callable[[Config, Draws], Config | None]

HIDDEN: Final = ("hidden_size", "n_embd", "d_model", "dim", "embed_dim", "embedding_size")
HEADS: Final = (
    "num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads", "encoder_attention_heads",
    "decoder_attention_heads", "num_key_value_heads", "num_kv_heads", "encoder_num_attention_heads",
    "decoder_num_attention_heads",
)  # fmt: skip
INNER: Final = (
    "intermediate_size", "n_inner", "ffn_dim", "hidden_dim", "d_ff", "encoder_ffn_dim", "decoder_ffn_dim",
    "moe_intermediate_size", "shared_expert_intermediate_size", "word_embed_proj_dim", "block_ff_dim",
    "feed_forward_size",
)  # fmt: skip
EXPERTS: Final = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
TOP_K: Final = ("num_experts_per_tok", "moe_top_k", "moe_topk", "moe_k", "top_k_experts", "num_selected_experts")
ACTIVATIONS: Final = ("hidden_act", "activation_function", "hidden_activation", "activation", "dense_act_fn")
FLAGS: Final = (
    "attention_bias", "mlp_bias", "qkv_bias", "use_qkv_bias", "use_bias", "bias", "conv_bias", "use_conv_bias",
    "use_parallel_residual", "parallel_attn", "do_layer_norm_before", "do_stable_layer_norm", "norm_topk_prob",
    "scale_embedding", "normalize_before", "use_qk_norm", "qk_layernorm", "residual_in_fp32", "use_sliding_window",
    "use_relative_position_bias", "use_absolute_embeddings", "alibi", "use_expert_bias", "use_gating",
    "tie_word_embeddings", "use_swiglu_ffn", "relative_attention", "position_biased_input",
)  # fmt: skip


def scaled(config: Config, draws: Draws) -> Config | None:
    """Narrower or wider by two or four, heads with it: the head size stays."""
    factor = draws.one((0.25, 0.5, 0.5, 2.0))
    return _changed(config, {key: lambda value: _times(value, factor) for key in (*HIDDEN, *HEADS, *INNER)})


def reheaded(config: Config, draws: Draws) -> Config | None:
    """Other heads on the same width: the head size moves to another class."""
    factor = draws.one((0.5, 2.0))
    changes: dict[str, Callable[[Any], Any]] = {key: lambda value: _times(value, factor) for key in HEADS}
    for key in ("head_dim", "d_kv", "kv_channels"):
        changes[key] = lambda value: _times(value, 1 / factor)
    return _changed(config, changes)


def grouped(config: Config, draws: Draws) -> Config | None:
    """Another number of key and value heads."""
    factor = draws.one((0.125, 0.25, 0.25, 0.5, 0.0))
    heads = next((config[key] for key in HEADS[:6] if isinstance(config.get(key), int)), 0)

    def change(_: Any) -> Any:
        return 1 if factor == 0 else _times(heads, factor)

    keys = ("num_key_value_heads", "num_kv_heads")
    if heads and "rms_norm_eps" in config and not any(key in config for key in keys):
        return {**config, "num_key_value_heads": change(heads)}
    return _changed(config, dict.fromkeys(keys, change))


def activated(config: Config, draws: Draws) -> Config | None:
    """Another activation function."""
    name = draws.one(("gelu", "silu", "relu", "gelu_new", "gelu_pytorch_tanh", "relu2", "quick_gelu"))
    return _changed(config, {key: lambda _: name for key in ACTIVATIONS})


def flagged(config: Config, draws: Draws) -> Config | None:
    """One flag the other way: a bias, a tie, a norm's place."""
    present = [key for key in FLAGS if isinstance(config.get(key), bool)]
    if not present:
        return None
    key = draws.one(present)
    return {**config, key: not config[key]}


def rerouted(config: Config, draws: Draws) -> Config | None:
    """Other experts, or more or fewer of them for each token."""
    if draws.chance(0.5):
        factor = draws.one((0.5, 2.0))
        return _changed(config, {key: lambda value: _times(value, factor) for key in EXPERTS})
    count = draws.one((1, 2, 4, 6, 8))
    return _changed(config, {key: lambda _: count for key in TOP_K})


def rotated(config: Config, draws: Draws) -> Config | None:
    """Another kind of rotary embedding, as context extensions use."""
    if "rope_scaling" in config or not ("rms_norm_eps" in config or "rotary_pct" in config):
        return None
    longest = config.get("max_position_embeddings", 4096)
    kind = draws.one(("linear", "dynamic", "yarn", "llama3"))
    block: Config = {"rope_type": kind, "factor": draws.one((2.0, 4.0, 8.0))}
    if kind in ("yarn", "llama3"):
        block["original_max_position_embeddings"] = longest
    if kind == "llama3":
        block |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    return {**config, "rope_scaling": block}


def windowed(config: Config, draws: Draws) -> Config | None:
    """Sliding attention on, off, or of another width or period."""
    if config.get("sliding_window_pattern"):
        return {**config, "sliding_window_pattern": draws.one((2, 3, 4))}
    if "sliding_window" not in config:
        return None
    return {**config, "sliding_window": draws.one((None, 128, 512, 1024))}


def patched(config: Config, draws: Draws) -> Config | None:
    """Other patches or convolution kernels."""
    size = draws.one((8, 14, 16, 32))
    image = config.get("image_size")
    if isinstance(config.get("patch_size"), int) and isinstance(image, int):
        return {**config, "patch_size": size, "image_size": max(size, image // size * size)}
    kernel = draws.one((3, 5, 7))
    keys = ("conv_kernel", "conv_kernel_size", "kernel_size", "conv_depthwise_kernel_size", "num_conv_pos_embeddings")
    return _changed(config, {key: lambda _: kernel for key in keys if isinstance(config.get(key), int)})


def shrunk(config: Config, draws: Draws) -> Config | None:
    """A test model: a few narrow layers, as `tiny-random` repositories hold."""
    if not any(isinstance(config.get(key), int) for key in HEADS) or "depths" in config:
        return None
    size = draws.one((8, 16, 32))
    heads = draws.one((2, 4))
    small = copy.deepcopy(config)
    for key, value in config.items():
        if not isinstance(value, int) or isinstance(value, bool):
            continue
        if key in HIDDEN:
            small[key] = size * heads
        elif key in ("num_key_value_heads", "num_kv_heads"):
            small[key] = heads if draws.chance(0.5) else heads // 2
        elif key in HEADS:
            small[key] = heads
        elif key in INNER:
            small[key] = 4 * size * heads
        elif key in ("head_dim", "d_kv"):
            small[key] = size
        elif key in ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers"):
            small[key] = min(value, 2)
    return small


ALL: Final[tuple[tuple[Move, float], ...]] = (
    (scaled, 3.0),
    (reheaded, 3.0),
    (grouped, 3.0),
    (activated, 1.5),
    (flagged, 3.0),
    (rerouted, 2.0),
    (rotated, 2.0),
    (windowed, 1.5),
    (patched, 2.0),
    (shrunk, 2.0),
)


def _times(value: Any, factor: float) -> Any:
    """Scale a whole number or a list of them; None where that does not come out even."""
    if isinstance(value, list):
        scaled_items = [_times(item, factor) for item in value]
        return None if None in scaled_items else scaled_items
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    result = value * factor
    return int(result) if result >= 1 and result == int(result) else None


def _changed(config: Config, changes: dict[str, Callable[[Any], Any]]) -> Config | None:
    """Apply each change to the keys that are there; None when nothing changed or a change failed."""
    result = dict(config)
    for key, change in changes.items():
        if config.get(key) is None:
            continue
        value = change(config[key])
        if value is None:
            return None
        result[key] = value
    return None if result == config else result
