"""Runs the compile path once in a zygote, so that no child has to load and fill what every compilation needs.

Forward only, without gradients: a backward pass starts autograd's engine, which counts the devices there are, once and
for all; a device that a child loads after the fork would then be unknown to it (torch/csrc/autograd/engine.cpp,
`start_device_threads`).
"""

from __future__ import annotations

import torch
import tqdm  # comes with torch.fx and transformers
from torch import nn


def warm_compile() -> None:
    """Compile and run a small model of common parts on the CPU, and leave no trace of it but warm caches."""
    tqdm.tqdm.monitor_interval = 0  # its monitor is a thread, and AOTAutograd starts it (torch/fx/interpreter.py)
    before = torch.get_rng_state()
    model, inputs = _model()
    with torch.no_grad():
        torch.compile(model, backend="aot_eager")(**inputs)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.set_rng_state(before)


def _model() -> tuple[nn.Module, dict[str, torch.Tensor]]:
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, vocab_size=100
    )
    tokens = torch.arange(8)[None]
    return BertForMaskedLM(config), {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": tokens}
