"""The optimizer every training case uses, as numbers: the children run it, the judge recomputes its first step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class AdamW:
    """Arguments of `torch.optim.AdamW`; its defaults, except that they are pinned here."""

    lr: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.01


ADAMW: Final = AdamW()
