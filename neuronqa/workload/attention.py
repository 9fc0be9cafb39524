"""FlexAttention with one modification of scores or mask becomes a runnable, at its whole size and at the executed one.

On the CPU the same modification is applied to a whole matrix of scores, element by element, by our own plain code: the
CPU's FlexAttention has no backward, and a reference that shares the device's path would share its errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from neuronqa.domain.workload import AttentionSpec, Modification
from neuronqa.workload.loss import Projection
from neuronqa.workload.runnable import Runnable
from neuronqa.workload.weights import generator

SOFT_CAP: Final = 20.0
WINDOW: Final = 8
"""A window sees an eighth of the sequence, a prefix is a quarter, and there are four documents."""
PREFIX: Final = 4
DOCUMENTS: Final = 4

Score = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
Mask = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def runnable(spec: AttentionSpec) -> Runnable:
    """The attention at its executed size; `whole` makes it at the size that is asked about."""
    executed = replace(spec, batch=spec.executed_batch, sequence=spec.executed_sequence)
    return Runnable(
        module=Attention(executed),
        inputs={"document": documents(executed)},
        loss=Projection(spec.seed),
        whole=lambda: (Attention(spec, filled=False), {"document": documents(spec)}),
        compile_budget_s=spec.compile_budget_s,
    )


def documents(spec: AttentionSpec) -> Tensor:
    """The number of the document each position belongs to; documents are of unequal length."""
    place = torch.arange(spec.sequence)
    bounds = [spec.sequence * share // 10 for share in (1, 4, 6)]
    assert len(bounds) == DOCUMENTS - 1
    return torch.stack([place >= bound for bound in bounds]).sum(0)


class Attention(nn.Module):
    """Queries, keys and values are parameters, so that their gradients are compared."""

    def __init__(self, spec: AttentionSpec, *, filled: bool = True) -> None:
        super().__init__()
        self._spec = spec
        self._filled = filled
        keys = (spec.batch, spec.kv_heads, spec.sequence, spec.head_dim)
        self.query = self._parameter("query", spec.batch, spec.heads, spec.sequence, spec.head_dim)
        self.key = self._parameter("key", *keys)
        self.value = self._parameter("value", *keys)
        if spec.modification is Modification.CAPTURED:
            self.bias = self._parameter("bias", spec.heads, spec.sequence)

    def _parameter(self, name: str, *shape: int) -> nn.Parameter:
        if not self._filled:
            return nn.Parameter(torch.empty(shape))
        return nn.Parameter(torch.randn(shape, generator=generator(self._spec.seed, name)))

    def forward(self, document: Tensor) -> dict[str, Tensor]:
        score, mask = self._score(), self._mask(document)
        if self.query.device.type == "cpu" and not torch.compiler.is_compiling():
            return {"output": dense(self.query, self.key, self.value, score, mask)}
        block = None if mask is None else self._block(mask)
        grouped = self._spec.heads != self._spec.kv_heads
        output = flex_attention(self.query, self.key, self.value, score_mod=score, block_mask=block, enable_gqa=grouped)
        assert isinstance(output, Tensor)
        return {"output": output}

    def _block(self, mask: Mask) -> BlockMask:
        length = self._spec.sequence
        return create_block_mask(mask, None, None, length, length, device=self.query.device)

    def _score(self) -> Score | None:
        match self._spec.modification:
            case Modification.ALIBI:
                heads = self._spec.heads
                return lambda score, _b, h, q, k: score - torch.exp2(-8.0 * (h + 1) / heads) * (q - k).abs()
            case Modification.SOFT_CAP:
                return lambda score, _b, _h, _q, _k: SOFT_CAP * torch.tanh(score / SOFT_CAP)
            case Modification.CAPTURED:
                bias = self.bias
                return lambda score, _b, h, q, k: score + bias[h, (q - k).abs()]
            case _:
                return None

    def _mask(self, document: Tensor) -> Mask | None:
        length = self._spec.sequence
        match self._spec.modification:
            case Modification.CAUSAL | Modification.GQA:
                return lambda _b, _h, q, k: q >= k
            case Modification.SLIDING_WINDOW:
                return lambda _b, _h, q, k: (q >= k) & (q - k < length // WINDOW)
            case Modification.DOCUMENT:
                return lambda _b, _h, q, k: (document[q] == document[k]) & (q >= k)
            case Modification.PREFIX:
                return lambda _b, _h, q, k: (k < length // PREFIX) | (q >= k)
            case _:
                return None


def dense(query: Tensor, key: Tensor, value: Tensor, score: Score | None, mask: Mask | None) -> Tensor:
    """Attention over a whole matrix of scores. Shapes as `flex_attention`: [batch, heads, sequence, width]."""
    groups = query.shape[1] // key.shape[1]
    key, value = (one.repeat_interleave(groups, dim=1) for one in (key, value))
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    batch, heads, rows, columns = scores.shape
    sizes = ((batch, 1, 1, 1), (1, heads, 1, 1), (1, 1, rows, 1), (1, 1, 1, columns))
    places: Any = [torch.arange(max(size), device=scores.device).view(size) for size in sizes]
    if score is not None:
        scores = score(scores, *places)
    if mask is not None:
        scores = scores.masked_fill(~mask(*places), -torch.inf)
    return torch.softmax(scores, dim=-1) @ value
