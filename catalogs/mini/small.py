"""Small models: healthy on every profile, but for two that no device can mend."""

import torch
from torch import nn
from torch.nn import functional as F


class Perceptron(nn.Module):
    """Two layers, normalised, with a classification loss."""

    def __init__(self, width: int = 48, classes: int = 10) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 160)
        self.down = nn.Linear(160, classes)

    def forward(self, features: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.down(F.gelu(self.up(self.norm(features))))
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


class Decoder(nn.Module):
    """One causal attention block between a tied embedding and its head."""

    def __init__(self, vocabulary: int = 96, width: int = 32, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.embed = nn.Embedding(vocabulary, width)
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.feed = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width)
        )
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        hidden = self.embed(ids)
        batch, length, width = hidden.shape
        q, k, v = self.qkv(self.norm(hidden)).view(batch, length, 3, self.heads, width // self.heads).unbind(2)
        mixed = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        hidden = hidden + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        hidden = hidden + self.feed(hidden)
        logits = self.head(hidden)
        loss = F.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]), labels[:, 1:].reshape(-1))
        return {"loss": loss, "logits": logits}


def perceptron() -> tuple[nn.Module, dict[str, torch.Tensor]]:
    """A classifier of 8 samples."""
    return Perceptron(), {"features": torch.randn(8, 48), "labels": torch.randint(0, 10, (8,))}


def decoder() -> tuple[nn.Module, dict[str, torch.Tensor]]:
    """A language model on 2 sequences of 12 tokens."""
    ids = torch.randint(0, 96, (2, 12))
    return Decoder(), {"ids": ids, "labels": ids.clone()}


class Broken(nn.Module):
    """Asks dynamo for a graph break between its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Perceptron()

    def forward(self, features: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        torch._dynamo.graph_break()
        return self.inner(features, labels)


class Unbounded(nn.Module):
    """Its own loss is infinite on the CPU, too."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Perceptron()

    def forward(self, features: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        out = self.inner(features, labels)
        return {**out, "loss": out["loss"] / (out["loss"] - out["loss"]).detach()}


def breaking() -> tuple[nn.Module, dict[str, torch.Tensor]]:
    """A classifier that cannot be one graph."""
    return Broken(), perceptron()[1]


def unbounded() -> tuple[nn.Module, dict[str, torch.Tensor]]:
    """A classifier whose reference is no reference."""
    return Unbounded(), perceptron()[1]
