"""Configs of well-known model families, as their public model cards describe them: only the fields that differ."""

from __future__ import annotations

from typing import Any, Final

_LLAMA3_ROPE: Final = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


def _llama3(**fields: Any) -> dict[str, Any]:
    base = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": 128256,
        "max_position_embeddings": 131072,
        "rope_theta": 500000.0,
        "rope_scaling": _LLAMA3_ROPE,
        "num_key_value_heads": 8,
        "tie_word_embeddings": False,
        "bos_token_id": 128000,
    }
    return base | fields


def _stack(
    model_type: str, head: str, hidden: int, inner: int, layers: int, heads: int, kv: int, **fields: Any
) -> dict[str, Any]:
    return {
        "model_type": model_type,
        "architectures": [head],
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
    } | fields


def _qwen(hidden: int, inner: int, layers: int, heads: int, kv: int, *, tied: bool) -> dict[str, Any]:
    fields = {"vocab_size": 151936, "tie_word_embeddings": tied, "max_window_layers": layers, "rope_theta": 1e6}
    return _stack("qwen2", "Qwen2ForCausalLM", hidden, inner, layers, heads, kv, **fields)


def _gemma2(hidden: int, inner: int, layers: int, heads: int, kv: int, head_dim: int, scalar: int) -> dict[str, Any]:
    fields = {"head_dim": head_dim, "query_pre_attn_scalar": scalar, "sliding_window": 4096}
    return _stack("gemma2", "Gemma2ForCausalLM", hidden, inner, layers, heads, kv, **fields)


def _bert(head: str, hidden: int, inner: int, layers: int, heads: int, **fields: Any) -> dict[str, Any]:
    base = {
        "model_type": "bert",
        "architectures": [head],
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
    }
    return base | fields


def _labels(count: int) -> dict[str, Any]:
    return {"id2label": {str(i): f"L{i}" for i in range(count)}}


def _t5(model: int, inner: int, layers: int, heads: int, head_dim: int, **fields: Any) -> dict[str, Any]:
    base = {
        "model_type": "t5",
        "architectures": ["T5ForConditionalGeneration"],
        "d_model": model,
        "d_ff": inner,
        "num_layers": layers,
        "num_heads": heads,
        "d_kv": head_dim,
        "vocab_size": 32128,
    }
    return base | fields


def _whisper(model: int, layers: int, heads: int, mel: int, decoder_layers: int) -> dict[str, Any]:
    return {
        "model_type": "whisper",
        "architectures": ["WhisperForConditionalGeneration"],
        "d_model": model,
        "encoder_layers": layers,
        "decoder_layers": decoder_layers,
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
        "encoder_ffn_dim": 4 * model,
        "decoder_ffn_dim": 4 * model,
        "num_mel_bins": mel,
        "vocab_size": 51866 if mel == 128 else 51865,
    }


def _vit(hidden: int, inner: int, layers: int, heads: int, patch: int, image: int) -> dict[str, Any]:
    return {
        "model_type": "vit",
        "architectures": ["ViTForImageClassification"],
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "patch_size": patch,
        "image_size": image,
    } | _labels(1000)


def _clip(text: dict[str, Any], vision: dict[str, Any], **fields: Any) -> dict[str, Any]:
    base = {"model_type": "clip", "architectures": ["CLIPModel"], "text_config": text, "vision_config": vision}
    return base | fields


FAMILIES: Final[dict[str, dict[str, Any]]] = {
    "llama-3.1-8b": _llama3(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32),
    "llama-3.1-8b-finetune": _llama3(
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        vocab_size=128264,
        eos_token_id=128258,
        pad_token_id=128263,
        use_cache=False,
        torch_dtype="bfloat16",
        _name_or_path="somebody/finetune",
        unsloth_version="2025.1",
    ),
    "llama-3.1-70b": _llama3(hidden_size=8192, intermediate_size=28672, num_hidden_layers=80, num_attention_heads=64),
    "llama-3.2-1b": _llama3(
        hidden_size=2048,
        intermediate_size=8192,
        num_hidden_layers=16,
        num_attention_heads=32,
        head_dim=64,
        tie_word_embeddings=True,
    ),
    "llama-2-7b": _stack("llama", "LlamaForCausalLM", 4096, 11008, 32, 32, 32, vocab_size=32000),
    "llama-2-13b": _stack("llama", "LlamaForCausalLM", 5120, 13824, 40, 40, 40, vocab_size=32000),
    "tinyllama": _stack("llama", "LlamaForCausalLM", 2048, 5632, 22, 32, 4, vocab_size=32000),
    "mistral-7b-v0.1": _stack("mistral", "MistralForCausalLM", 4096, 14336, 32, 32, 8, sliding_window=4096),
    "mistral-7b-v0.3": _stack(
        "mistral", "MistralForCausalLM", 4096, 14336, 32, 32, 8, sliding_window=None, vocab_size=32768, rope_theta=1e6
    ),
    "qwen2.5-0.5b": _qwen(896, 4864, 24, 14, 2, tied=True),
    "qwen2.5-1.5b": _qwen(1536, 8960, 28, 12, 2, tied=True),
    "qwen2.5-7b": _qwen(3584, 18944, 28, 28, 4, tied=False),
    "qwen2.5-32b": _qwen(5120, 27648, 64, 40, 8, tied=False),
    "qwen2.5-72b": _qwen(8192, 29568, 80, 64, 8, tied=False),
    "gemma-2-2b": _gemma2(2304, 9216, 26, 8, 4, 256, 256),
    "gemma-2-9b": _gemma2(3584, 14336, 42, 16, 8, 256, 256),
    "gemma-2-27b": _gemma2(4608, 36864, 46, 32, 16, 128, 144),
    "phi-3-mini": _stack("phi3", "Phi3ForCausalLM", 3072, 8192, 32, 32, 32, sliding_window=2047),
    "phi-3-medium": _stack("phi3", "Phi3ForCausalLM", 5120, 17920, 40, 40, 10, sliding_window=2047),
    "mixtral-8x7b": _stack("mixtral", "MixtralForCausalLM", 4096, 14336, 32, 32, 8),
    "mixtral-8x22b": _stack("mixtral", "MixtralForCausalLM", 6144, 16384, 56, 48, 8),
    "deepseek-v3": {"model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"]},
    "deepseek-lite": _stack(
        "deepseek_v3",
        "DeepseekV3ForCausalLM",
        2048,
        18432,
        27,
        16,
        16,
        q_lora_rank=None,
        n_group=1,
        topk_group=1,
        n_routed_experts=64,
        num_experts_per_tok=6,
    ),
    "gpt-oss-20b": {
        "model_type": "gpt_oss",
        "architectures": ["GptOssForCausalLM"],
        "num_hidden_layers": 24,
        "num_local_experts": 32,
    },
    "gpt-oss-120b": {
        "model_type": "gpt_oss",
        "architectures": ["GptOssForCausalLM"],
        "num_hidden_layers": 36,
        "num_local_experts": 128,
    },
    "bert-base": _bert("BertForMaskedLM", 768, 3072, 12, 12, vocab_size=30522),
    "bert-large": _bert("BertForMaskedLM", 1024, 4096, 24, 16, vocab_size=28996),
    "bert-mnli": _bert("BertForSequenceClassification", 768, 3072, 12, 12, **_labels(3)),
    "bert-sentiment": _bert("BertForSequenceClassification", 768, 3072, 12, 12, **_labels(5)),
    "bert-score": _bert("BertForSequenceClassification", 768, 3072, 12, 12, **_labels(1)),
    "bert-ner-9": _bert("BertForTokenClassification", 768, 3072, 12, 12, **_labels(9)),
    "bert-ner-17": _bert("BertForTokenClassification", 768, 3072, 12, 12, **_labels(17)),
    "t5-small": _t5(512, 2048, 6, 8, 64),
    "t5-base": _t5(768, 3072, 12, 12, 64),
    "t5-large": _t5(1024, 4096, 24, 16, 64),
    "t5-3b": _t5(1024, 16384, 24, 32, 128),
    "flan-t5-small": _t5(512, 1024, 8, 6, 64, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    "flan-t5-xxl": _t5(4096, 10240, 24, 64, 64, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    "whisper-tiny": _whisper(384, 4, 6, 80, 4),
    "whisper-small": _whisper(768, 12, 12, 80, 12),
    "whisper-large-v2": _whisper(1280, 32, 20, 80, 32),
    "whisper-large-v3": _whisper(1280, 32, 20, 128, 32),
    "whisper-large-v3-turbo": _whisper(1280, 32, 20, 128, 4),
    "vit-base-16-224": _vit(768, 3072, 12, 12, 16, 224),
    "vit-base-16-384": _vit(768, 3072, 12, 12, 16, 384),
    "vit-large-16": _vit(1024, 4096, 24, 16, 16, 224),
    "vit-base-32": _vit(768, 3072, 12, 12, 32, 384),
    "clip-b-32": _clip(
        {"hidden_size": 512, "num_attention_heads": 8},
        {"hidden_size": 768, "num_attention_heads": 12, "patch_size": 32},
    ),
    "clip-b-16": _clip(
        {"hidden_size": 512, "num_attention_heads": 8},
        {"hidden_size": 768, "num_attention_heads": 12, "patch_size": 16},
    ),
    "clip-l-14": _clip(
        {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12},
        {
            "hidden_size": 1024,
            "intermediate_size": 4096,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "patch_size": 14,
        },
    ),
}
