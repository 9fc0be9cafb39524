"""Small real architectures, one of each kind, and modules with one peculiarity each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from neuronqa.domain.workload import ModuleSpec, Workload
from neuronqa.workload.runnable import Runnable

VOCABULARY = 97


def _text(module: nn.Module, **more: Any) -> Runnable:
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(0, VOCABULARY, (2, 16), generator=generator)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids, **more}
    return Runnable(module=module.train(), inputs=inputs, loss=lambda outputs: outputs.loss)


def llama() -> Runnable:
    from transformers import LlamaConfig, LlamaForCausalLM

    return _text(
        LlamaForCausalLM(
            LlamaConfig(
                vocab_size=VOCABULARY,
                hidden_size=32,
                intermediate_size=64,
                num_hidden_layers=2,
                num_attention_heads=4,
                num_key_value_heads=2,
                use_cache=False,
            )
        )
    )


def gpt2() -> Runnable:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_positions=64,
        resid_pdrop=0,
        embd_pdrop=0,
        attn_pdrop=0,
        use_cache=False,
    )
    return _text(GPT2LMHeadModel(config))


def bert() -> Runnable:
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        hidden_dropout_prob=0,
        attention_probs_dropout_prob=0,
    )
    return _text(BertForMaskedLM(config))


def t5() -> Runnable:
    from transformers import T5Config, T5ForConditionalGeneration

    make: Callable[..., T5Config] = T5Config
    config = make(
        vocab_size=VOCABULARY,
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        dropout_rate=0,
        use_cache=False,
        decoder_start_token_id=0,
    )
    return _text(T5ForConditionalGeneration(config))


def qwen2() -> Runnable:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        use_cache=False,
        tie_word_embeddings=True,
    )
    return _text(Qwen2ForCausalLM(config))


def mixtral() -> Runnable:
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_local_experts=4,
        num_experts_per_tok=2,
        use_cache=False,
    )
    return _text(MixtralForCausalLM(config))


def mamba() -> Runnable:
    from transformers import MambaConfig, MambaForCausalLM

    config = MambaConfig(vocab_size=VOCABULARY, hidden_size=32, state_size=8, num_hidden_layers=2, use_cache=False)
    return _text(MambaForCausalLM(config))


def vit() -> Runnable:
    from transformers import ViTConfig, ViTForImageClassification

    make: Callable[..., ViTConfig] = ViTConfig
    config = make(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        image_size=32,
        patch_size=8,
        hidden_dropout_prob=0,
        attention_probs_dropout_prob=0,
        num_labels=5,
    )
    return _pixels(ViTForImageClassification(config))


def resnet() -> Runnable:
    from transformers import ResNetConfig, ResNetForImageClassification

    make: Callable[..., ResNetConfig] = ResNetConfig
    config = make(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], num_labels=5, layer_type="basic")
    return _pixels(ResNetForImageClassification(config))


def _pixels(module: nn.Module) -> Runnable:
    generator = torch.Generator().manual_seed(1)
    pixels = torch.randn(4, 3, 32, 32, generator=generator)
    labels = torch.tensor([0, 3, 1, 4])
    return Runnable(
        module=module.train(), inputs={"pixel_values": pixels, "labels": labels}, loss=lambda outputs: outputs.loss
    )


def whisper() -> Runnable:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        vocab_size=VOCABULARY,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_mel_bins=8,
        max_source_positions=32,
        max_target_positions=32,
        dropout=0,
        use_cache=False,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    generator = torch.Generator().manual_seed(1)
    inputs = {
        "input_features": torch.randn(2, 8, 64, generator=generator),
        "labels": torch.randint(3, VOCABULARY, (2, 12), generator=generator),
    }
    module = WhisperForConditionalGeneration(config).train()
    return Runnable(module=module, inputs=inputs, loss=lambda outputs: outputs.loss)


FAMILIES: dict[str, Callable[[], Runnable]] = {
    function.__name__: function for function in (llama, gpt2, bert, t5, qwen2, mixtral, mamba, vit, resnet, whisper)
}


class Small(nn.Module):
    """Two layers, a buffer that moves, outputs of several kinds."""

    seen: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.last = nn.Linear(8, 4)
        self.register_buffer("seen", torch.zeros(6))

    def forward(self, x: Tensor) -> dict[str, Any]:
        if self.training:
            self.seen.add_(x.mean(0))
        hidden = torch.tanh(self.first(x))
        logits = self.last(hidden)
        return {"logits": logits, "hidden": [hidden], "choice": logits.argmax(-1), "name": "small", "rate": 0.5}


def small() -> Runnable:
    generator = torch.Generator().manual_seed(1)
    inputs = {"x": torch.randn(5, 6, generator=generator)}
    return Runnable(module=Small().train(), inputs=inputs, loss=lambda outputs: outputs["logits"].square().mean())


def workload(name: str) -> Workload:
    return Workload(ModuleSpec(source="families", source_sha256="", factory=name))


def build_from(factories: dict[str, Callable[[], Runnable]]) -> Callable[[Workload], Runnable]:
    """A builder like the real one: the same spec gives the same weights in any process."""

    def build(given: Workload) -> Runnable:
        torch.manual_seed(0)
        assert isinstance(given.spec, ModuleSpec)
        return factories[given.spec.factory]()

    return build
