"""Small modules that are sound everywhere, of several kinds. Needs torch only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

GAIN = 4.0
"""Makes the loss of one linear layer fall far enough in a few steps to be seen above the rounding of bfloat16."""
Made = tuple[nn.Module, dict[str, Any], Callable[[Any], Tensor]]


def own_loss(outputs: Any) -> Tensor:
    loss: Tensor = outputs["loss"]
    return loss


class Labelled(nn.Module):
    """Any body that makes logits, with a cross entropy."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: Tensor, label: Tensor) -> dict[str, Tensor]:
        logits = self.body(x)
        return {"logits": logits, "loss": functional.cross_entropy(logits, label)}


def perceptron() -> Made:
    """Linear layers with a layer norm between."""
    body = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))
    return Labelled(body), {"x": torch.randn(8, 16), "label": torch.arange(8) % 4}, own_loss


def convolution() -> Made:
    """A convolution over images, pooled."""
    body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 8 * 8, 4))
    return Labelled(body), {"x": torch.randn(4, 3, 8, 8), "label": torch.arange(4)}, own_loss


class Block(nn.Module):
    """One causal attention block over tied embeddings, written out."""

    def __init__(self, vocabulary: int, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, std=0.2)
        self.norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, x: Tensor, label: Tensor) -> dict[str, Tensor]:
        h = self.embedding(x)
        batch, length, width = h.shape
        split = self.query_key_value(self.norm(h)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-1, -2) * (width // self.heads) ** -0.5
        mask = torch.full((length, length), float("-inf"), device=x.device, dtype=scores.dtype).triu(1)
        mixed = torch.softmax(scores + mask, dim=-1) @ value
        h = h + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        logits = self.head(h)
        return {"logits": logits, "loss": functional.cross_entropy(logits.flatten(0, 1), label.flatten())}


def attention() -> Made:
    """Causal attention over tokens, with tied weights."""
    x = torch.randint(0, 64, (2, 12))
    return Block(64, 32, 4), {"x": x, "label": x.roll(-1, 1)}, own_loss


class Tree(nn.Module):
    """Nested inputs, nested outputs, a truth value among them."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 4)

    def forward(self, batch: dict[str, Any]) -> dict[str, Any]:
        logits = GAIN * (self.linear(batch["points"][0]) + self.linear(batch["points"][1]))
        loss = functional.cross_entropy(logits, batch["label"])
        return {"loss": loss, "parts": [logits, (logits > 0,)]}


def structure() -> Made:
    """Nested inputs and outputs."""
    batch = {"points": [torch.randn(8, 16), torch.randn(8, 16)], "label": torch.arange(8) % 4}
    return Tree(), {"batch": batch}, own_loss


class Counting(nn.Module):
    """Keeps a running mean in a buffer, as batch norms do."""

    mean: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(16, 4)
        self.register_buffer("mean", torch.zeros(16))

    def forward(self, x: Tensor, label: Tensor) -> dict[str, Tensor]:
        self.mean.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
        logits = GAIN * self.linear(x - self.mean)
        return {"logits": logits, "loss": functional.cross_entropy(logits, label)}


def buffers() -> Made:
    """A buffer that every forward updates."""
    return Counting(), {"x": torch.randn(8, 16), "label": torch.arange(8) % 4}, own_loss


def without_loss() -> tuple[nn.Module, dict[str, Any]]:
    """A model without a loss of its own: the harness projects its outputs."""
    return nn.Linear(16, 8), {"input": torch.randn(8, 16)}
