"""One matrix product as a layer of its own. Needs torch only."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


def product(m: int, k: int, n: int) -> tuple[nn.Module, dict[str, Any]]:
    """`m` rows through a projection from `k` to `n`."""
    return nn.Linear(k, n, bias=False), {"input": torch.randn(m, k)}
