"""Tokens sent to experts on other ranks and back, over all-to-all, forward and backward.

Each rank holds its own tokens and its share of the experts. The plain run computes every expert for every token without
sending anything. Needs torch only.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.nn.functional import all_to_all_single

EXPERTS = 8
WIDTH = 16
TOKENS = 24
"""On each rank; with uneven counts the last rank has half of them."""
CAPACITY = 5
"""Tokens of one rank that one expert takes; later ones of that rank are dropped."""


def dispatch(place: Any, top: int, even: bool, capacity: bool) -> dict[str, Tensor]:
    """One mixture layer; returns this rank's outputs and the gradients of its tokens and of its experts."""
    world = [_tokens(rank, place, even) for rank in range(place.ranks)]
    router, experts = _weights(place)
    if place.whole:
        return _whole(place, world, router, experts, top, capacity)
    place.join()
    mine = world[place.rank].to(place.device).requires_grad_()
    router = router.to(place.device)
    share = experts.chunk(place.ranks)[place.rank].to(place.device).requires_grad_()
    output = _sent(mine, router, share, top, capacity, place.ranks)
    output.square().sum().backward()
    assert mine.grad is not None
    assert share.grad is not None
    return {"output": output, "token-gradient": mine.grad, "expert-gradient": share.grad}


def _sent(tokens: Tensor, router: Tensor, share: Tensor, top: int, capacity: bool, ranks: int) -> Tensor:
    """Sort by expert, send, compute, send back, weigh and add up."""
    gates, chosen = _route(tokens, router, top, capacity)
    flat = chosen.reshape(-1)
    kept = (gates.reshape(-1) > 0).nonzero()[:, 0]
    order = kept[torch.argsort(flat[kept], stable=True)]
    counts = torch.bincount(flat[kept], minlength=EXPERTS)
    arriving = torch.empty_like(counts)
    dist.all_to_all_single(arriving, counts)
    leave = counts.view(ranks, -1).sum(1).tolist()
    arrive = arriving.view(ranks, -1).sum(1).tolist()
    sent = tokens[order // top]
    received = all_to_all_single(sent.new_empty(sum(arrive), WIDTH), sent, arrive, leave)
    local = torch.arange(EXPERTS // ranks, device=tokens.device).repeat(ranks)
    expert = torch.repeat_interleave(local, arriving)
    computed = torch.zeros_like(received)
    for number in range(EXPERTS // ranks):
        rows = (expert == number).nonzero()[:, 0]
        computed = computed.index_add(0, rows, torch.tanh(received[rows] @ share[number]))
    back = all_to_all_single(sent.new_empty(sent.shape), computed, leave, arrive)
    weighed = back * gates.reshape(-1)[order, None]
    return torch.zeros_like(tokens).index_add(0, order // top, weighed)


def _whole(
    place: Any, world: list[Tensor], router: Tensor, experts: Tensor, top: int, capacity: bool
) -> dict[str, Tensor]:
    tokens = [one.clone().requires_grad_() for one in world]
    experts = experts.clone().requires_grad_()
    outputs = []
    for one in tokens:
        gates, chosen = _route(one, router, top, capacity)
        every = torch.tanh(torch.einsum("tw,ewv->tev", one, experts))
        picked = every.gather(1, chosen[:, :, None].expand(-1, -1, WIDTH))
        outputs.append((picked * gates[:, :, None]).sum(1))
    torch.stack([one.square().sum() for one in outputs]).sum().backward()
    mine, all_experts = tokens[place.rank].grad, experts.grad
    assert mine is not None
    assert all_experts is not None
    share = all_experts.chunk(place.ranks)[place.rank]
    return {"output": outputs[place.rank], "token-gradient": mine, "expert-gradient": share}


def _route(tokens: Tensor, router: Tensor, top: int, capacity: bool) -> tuple[Tensor, Tensor]:
    """Gates and experts of each token, [tokens, top]; the gate of what an expert has no room for is zero."""
    gates, chosen = torch.softmax(tokens @ router, dim=-1).topk(top)
    if not capacity:
        return gates, chosen
    taken = torch.nn.functional.one_hot(chosen.reshape(-1), EXPERTS)
    place = (taken.cumsum(0) * taken).sum(-1).view(chosen.shape)
    return gates * (place <= CAPACITY), chosen


def _tokens(rank: int, place: Any, even: bool) -> Tensor:
    count = TOKENS if even or rank < place.ranks - 1 else TOKENS // 2
    drawn = torch.randn(count, WIDTH, generator=torch.Generator().manual_seed(rank))
    return drawn.to(place.dtype)


def _weights(place: Any) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(1234)
    router, experts = torch.randn(WIDTH, EXPERTS, generator=draw), torch.randn(EXPERTS, WIDTH, WIDTH, generator=draw)
    return router.to(place.dtype), (experts / WIDTH**0.5).to(place.dtype)
