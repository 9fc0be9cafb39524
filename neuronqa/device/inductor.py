"""Warms inductor's C++ compiler in a process that has no device, so that the children it forks need not."""

from __future__ import annotations

import torch
import torch._dynamo
from torch import nn
from torch._inductor import config
from tqdm import tqdm


def warm_compile() -> None:
    """Compile a little, with torch's headers compiled before the rest: a third of what each later kernel costs.

    inductor keeps the headers in the user's cache and remembers in the process where: children inherit both, and may
    read the one and not write it.
    """
    config.cpp_cache_precompile_headers = True
    tqdm.monitor_interval = 0  # its thread would be lost in a fork
    with torch.random.fork_rng(devices=[]):
        model = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.LayerNorm(16))
        torch.compile(model, backend="inductor")(torch.ones(8, 16)).sum().backward()
    torch._dynamo.reset()
