"""Warms the compile path of a process that has no device, so that the children it forks need not.

Most of what a first compilation costs is spent once a process: imports, tables and caches inside dynamo, FakeTensor,
AOTAutograd and sympy. All of it is inherited over a fork. What must not be inherited is put back: dynamo's caches and
counters, configuration, the random state, and no device, thread or backend is left registered.
"""

from __future__ import annotations

import torch
import torch._dynamo
import torch._dynamo.utils
import torch.hub
import torch.nn.functional as F
from torch import Tensor, nn

from neuronqa.device.neuron import profile
from neuronqa.device.neuron.compiler import metrics, thrift
from neuronqa.device.neuron.compiler.backend import NeuronBackend


class Small(nn.Module):
    """A little of what most models are made of."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(16, 8)
        self.positions = nn.Buffer(torch.arange(4).float())
        self.norms = nn.ModuleList([nn.LayerNorm(8), nn.LayerNorm(8)])
        self.mix = nn.ModuleDict({"q": nn.Linear(8, 8), "k": nn.Linear(8, 8, bias=False), "v": nn.Linear(8, 8)})
        self.convolution = nn.Conv1d(8, 8, 3, padding=1)
        self.dropout = nn.Dropout(0.0)
        self.head = nn.Linear(8, 16)

    def forward(self, tokens: Tensor, labels: Tensor | None = None) -> dict[str, Tensor | None]:
        x = self.embedding(tokens) + self.positions[None, :, None].cos()
        for norm in self.norms:
            x = x + self.attend(norm(x))
        x = F.silu(x) * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        x = self.convolution(x.transpose(1, 2)).transpose(1, 2)
        logits = self.head(F.gelu(self.dropout(x)))
        loss = None if labels is None else F.cross_entropy(logits.view(-1, 16), labels.view(-1))
        return {"loss": loss, "logits": logits}

    def attend(self, x: Tensor) -> Tensor:
        """Two heads, eager and fused, causal."""
        q, k, v = (self.mix[name](x).view(*x.shape[:2], 2, 4).transpose(1, 2) for name in "qkv")
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        weights = (q @ k.transpose(-1, -2)).masked_fill(~mask, torch.finfo(x.dtype).min).softmax(-1)
        fused = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        mixed: Tensor = weights @ v + fused
        return mixed.transpose(1, 2).reshape(x.shape)


def warm_compile() -> None:
    """Compile and train a small model on the CPU through the backend's own passes, and leave no trace but warmth."""
    thrift.spare_function_names()
    # The progress bar of the FX interpreter would start a thread, and a fork would lose it.
    torch.hub.tqdm.monitor_interval = 0  # type: ignore[attr-defined]
    settings = torch._dynamo.config.automatic_dynamic_shapes
    with torch.random.fork_rng(devices=[]):
        torch._dynamo.config.automatic_dynamic_shapes = False
        try:
            model = Small()
            tokens = torch.zeros(2, 4, dtype=torch.long)
            compiled = torch.compile(model, backend=NeuronBackend(profile.load()))
            compiled(tokens, labels=tokens)["loss"].backward()
        finally:
            torch._dynamo.config.automatic_dynamic_shapes = settings
            torch._dynamo.reset()
            torch._dynamo.utils.counters.clear()
            metrics.reset()
