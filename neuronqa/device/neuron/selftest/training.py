"""Modules on the device: moved, differentiated, optimised, as on the CPU."""

from __future__ import annotations

import copy
import threading
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from neuronqa.device.neuron.selftest.behaviour import N, behaviour, refuses, same


class Tied(nn.Module):
    """Input and output embedding are one parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 3)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("scale", torch.ones(2))


@behaviour
def moving_a_module_keeps_its_parameters_and_ties() -> None:
    model = Tied()
    weight = model.head.weight
    model.to(N)
    assert isinstance(model.head.weight, nn.Parameter)
    assert model.head.weight is weight
    assert model.embedding.weight is weight
    assert weight.device.type == N
    assert model.get_buffer("scale").device.type == N


def twins(model: nn.Module) -> tuple[nn.Module, nn.Module]:
    return model, copy.deepcopy(model).to(N)


@behaviour
def gradients_are_those_of_the_cpu() -> None:
    torch.manual_seed(0)
    host, moved = twins(nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 2)))
    x = torch.randn(3, 4)
    on_host, on_device = x.clone().requires_grad_(), x.to(N).requires_grad_()
    host(on_host).pow(2).sum().backward()
    moved(on_device).pow(2).sum().backward()
    assert on_device.grad is not None
    assert on_host.grad is not None
    same(on_device.grad, on_host.grad, 1e-6)
    for ours, theirs in zip(moved.parameters(), host.parameters(), strict=True):
        assert ours.grad is not None
        assert theirs.grad is not None
        same(ours.grad, theirs.grad, 1e-6)


@behaviour
def backward_from_many_threads_neither_hangs_nor_crashes() -> None:
    def train() -> None:
        x = torch.randn(4, 4, device=N, requires_grad=True)
        for _ in range(20):
            (x @ x).relu().sum().backward()

    threads = [threading.Thread(target=train) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


class Doubling(torch.autograd.Function):
    """Saves a tensor and sees it again."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        ctx.save_for_backward(value)
        return value * 2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (saved,) = ctx.saved_tensors
        assert saved.device.type == N
        return grad * 2


@behaviour
def checkpointing_works() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).to(N)
    x = torch.randn(2, 4, device=N, requires_grad=True)
    checkpoint(model, x, use_reentrant=False).sum().backward()
    checkpoint(model, x, use_reentrant=True).sum().backward()
    assert x.grad is not None


@behaviour
def custom_functions_work() -> None:
    y = torch.randn(2, device=N, requires_grad=True)
    doubled: Tensor = Doubling.apply(y)  # type: ignore[no-untyped-call]
    doubled.sum().backward()
    assert y.grad is not None
    same(y.grad, torch.full((2,), 2.0))


@behaviour
def adamw_steps_as_on_the_cpu() -> None:
    _steps_alike(torch.optim.AdamW, {"lr": 0.1})


@behaviour
def foreach_adamw_steps_as_on_the_cpu() -> None:
    _steps_alike(torch.optim.AdamW, {"lr": 0.1, "foreach": True})


@behaviour
def fused_adamw_steps_as_on_the_cpu() -> None:
    _steps_alike(torch.optim.AdamW, {"lr": 0.1, "fused": True})


@behaviour
def fused_sgd_steps_as_on_the_cpu() -> None:
    _steps_alike(torch.optim.SGD, {"lr": 0.01, "momentum": 0.9, "fused": True})


def _steps_alike(kind: Any, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    host, moved = twins(nn.Linear(4, 3))
    x = torch.randn(5, 4)
    pairs = [(host, kind(host.parameters(), **options), x), (moved, kind(moved.parameters(), **options), x.to(N))]
    for _ in range(3):
        for model, optimizer, inputs in pairs:
            optimizer.zero_grad()
            model(inputs).pow(2).sum().backward()
            optimizer.step()
    same(moved.weight, host.weight, 1e-6)  # type: ignore[arg-type]


@behaviour
def gradients_can_be_clipped() -> None:
    for foreach in (None, True):
        model = nn.Linear(2, 2).to(N)
        (model(torch.ones(1, 2, device=N)).sum() * 100).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=foreach)
        norm = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).norm().item()
        assert abs(norm - 1) < 1e-3


@behaviour
def autocast_follows_the_lists() -> None:
    model = nn.Linear(4, 4).to(N)
    x = torch.randn(2, 4, device=N)
    with torch.autocast(N, dtype=torch.bfloat16):
        y = model(x)
        assert y.dtype == torch.bfloat16
        assert F.softmax(y, -1).dtype == torch.float32
        assert (y + 1).dtype == torch.bfloat16
        with refuses(RuntimeError, words="unsafe to autocast"):
            F.binary_cross_entropy(torch.rand(2, device=N), torch.rand(2, device=N))
    y.float().sum().backward()
    assert model.weight.grad is not None
    assert model.weight.grad.dtype == torch.float32


@behaviour
def gradients_can_be_scaled() -> None:
    scaler = torch.amp.GradScaler(N, init_scale=8.0)
    model = nn.Linear(2, 2).to(N)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler.scale(model(torch.ones(1, 2, device=N)).sum()).backward()
    scaler.unscale_(optimizer)
    assert model.bias.grad is not None
    same(model.bias.grad, torch.ones(2))
    scaler.step(optimizer)
    scaler.update()


@behaviour
def attention_is_that_of_the_cpu() -> None:
    q = torch.randn(1, 2, 4, 8)
    host, moved = q.clone().requires_grad_(), q.to(N).requires_grad_()
    F.scaled_dot_product_attention(host, host, host, is_causal=True).sum().backward()
    F.scaled_dot_product_attention(moved, moved, moved, is_causal=True).sum().backward()
    assert moved.grad is not None
    assert host.grad is not None
    same(moved.grad, host.grad, 1e-5)
    mask = torch.ones(4, 4, dtype=torch.bool, device=N)
    F.scaled_dot_product_attention(moved, moved, moved, attn_mask=mask)
    k = torch.randn(1, 1, 4, 8, device=N)
    F.scaled_dot_product_attention(moved, k, k, enable_gqa=True)


@behaviour
def flex_attention_runs_eagerly() -> None:
    from torch.nn.attention.flex_attention import flex_attention

    q = torch.randn(1, 2, 16, 8, device=N)
    same(flex_attention(q, q, q, score_mod=lambda score, *_: score), F.scaled_dot_product_attention(q, q, q), 1e-5)


@behaviour
def flex_attention_takes_block_masks() -> None:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    q = torch.randn(1, 2, 16, 8, device=N)
    causal = create_block_mask(lambda _b, _h, i, j: i >= j, None, None, 16, 16, device=N)
    masked = flex_attention(q, q, q, block_mask=causal)
    same(masked, F.scaled_dot_product_attention(q, q, q, is_causal=True), 1e-5)


@behaviour
def convolution_pooling_and_batch_norm_are_those_of_the_cpu() -> None:
    torch.manual_seed(0)
    layers = (nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.ConvTranspose2d(4, 2, 2))
    host, moved = twins(nn.Sequential(*layers))
    x = torch.randn(2, 3, 8, 8)
    host(x).sum().backward()
    moved(x.to(N)).sum().backward()
    ours, theirs = next(moved.parameters()).grad, next(host.parameters()).grad
    assert ours is not None
    assert theirs is not None
    same(ours, theirs, 1e-4)
    nn.Conv1d(3, 4, 3).to(N)(torch.randn(1, 3, 9, device=N)).sum().backward()


@behaviour
def lstm_is_that_of_the_cpu() -> None:
    _recurs_alike(nn.LSTM(4, 5, batch_first=True, bidirectional=True))


@behaviour
def gru_and_rnn_are_those_of_the_cpu() -> None:
    for model in (nn.GRU(4, 5), nn.GRU(4, 5, bias=False), nn.RNN(4, 5)):
        _recurs_alike(model)


def _recurs_alike(model: nn.Module) -> None:
    host, moved = twins(model)
    x = torch.randn(2, 3, 4)
    host(x)[0].pow(2).sum().backward()
    moved(x.to(N))[0].pow(2).sum().backward()
    for ours, theirs in zip(moved.parameters(), host.parameters(), strict=True):
        assert ours.grad is not None
        assert theirs.grad is not None
        same(ours.grad, theirs.grad, 1e-5)


@behaviour
def embedding_and_cross_entropy_train() -> None:
    embedding = nn.Embedding(10, 4).to(N)
    logits = embedding(torch.tensor([[1, 2]], device=N)).view(-1, 4)
    F.cross_entropy(logits, torch.tensor([0, 3], device=N)).backward()
    assert embedding.weight.grad is not None
    assert embedding.weight.grad.device.type == N


@behaviour
def a_meta_module_can_be_materialised() -> None:
    with torch.device("meta"):
        model = nn.Linear(2, 2)
    model.to_empty(device=N)
    assert model.weight.device.type == N
    nn.init.normal_(model.weight)
