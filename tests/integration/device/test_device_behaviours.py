"""What anybody may expect of a PyTorch accelerator, on the profile that limits nothing."""

from __future__ import annotations

import copy
import io
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

pytestmark = pytest.mark.device

N = "neuron"


def same(actual: Tensor, expected: Tensor, tolerance: float = 0) -> None:
    torch.testing.assert_close(
        actual.detach().cpu(), expected.detach().cpu(), rtol=tolerance, atol=tolerance, equal_nan=True
    )


def test_the_device_type_has_its_name() -> None:
    assert torch.device(N).type == N


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.randn(2, 3, device=N),
        lambda: torch.arange(5, device=N),
        lambda: torch.full((2,), 1.0, device=N),
        lambda: torch.zeros(2, device=N),
        lambda: torch.eye(3, device=N),
        lambda: torch.tensor([1, 2], device=N),
        lambda: torch.randint(0, 5, (3,), device=N),
        lambda: torch.randperm(4, device=N),
        lambda: torch.linspace(0, 1, 3, device=N),
    ],
    ids=["randn", "arange", "full", "zeros", "eye", "tensor", "randint", "randperm", "linspace"],
)
def test_factories_make_tensors_on_the_device(make: Any) -> None:
    made = make()
    assert made.device.type == N
    assert "neuron" in repr(made)


def test_tensors_move_to_the_device_and_back() -> None:
    host = torch.randn(3, 4)
    moved = host.to(N)
    assert moved.device.type == N
    assert moved.cpu().device.type == "cpu"
    assert type(moved.cpu()) is Tensor
    same(moved, host)
    same(host.t().to(N), host.t())
    same(moved.to(torch.bfloat16), host.bfloat16())


def test_copies_do_not_share_memory() -> None:
    host = torch.randn(3)
    moved = torch.empty(3, device=N)
    moved.copy_(host)
    clone = moved.clone()
    clone.add_(1)
    same(moved, host)
    back = torch.empty(3)
    back.copy_(moved)
    same(back, host)


def test_views_share_memory_and_know_their_base() -> None:
    host = torch.arange(12.0).reshape(3, 4)
    moved = host.clone().to(N)
    view = moved[1:, ::2].t()
    view.add_(10)
    host[1:, ::2].add_(10)
    same(moved, host)
    assert view._base is moved
    assert view.data_ptr() == moved.data_ptr() + 16
    assert view.untyped_storage().data_ptr() == moved.untyped_storage().data_ptr()
    moved.view(-1)[0] = 99
    assert moved[0, 0].item() == 99
    assert moved.unfold(0, 2, 1).shape == (2, 4, 2)
    moved.diagonal().zero_()
    moved.split(2, 1)[0].fill_(3)
    assert moved[0, 0].item() == 3


def test_in_place_out_and_list_operators_work() -> None:
    ones = torch.ones(3, device=N)
    assert ones.add_(1) is ones
    out = torch.empty(0, device=N)
    torch.add(ones, ones, out=out)
    same(out, torch.full((3,), 4.0))
    torch.cat([ones, ones], out=out)
    same(out, torch.full((6,), 2.0))
    same(torch.stack([ones, ones]), torch.full((2, 3), 2.0))
    index = torch.tensor([0, 2], device=N)
    ones[index] = 5.0
    same(ones, torch.tensor([5.0, 2.0, 5.0]))
    ones.resize_(5)
    assert ones.shape == (5,)
    assert ones[0].item() == 5
    torch._foreach_add_([out, out.clone()], 1.0)
    values, indices = torch.empty(0, device=N), torch.empty(0, dtype=torch.long, device=N)
    torch.sort(out, out=(values, indices))
    assert values.shape == (6,)


class Tied(nn.Module):
    """Input and output embedding are one parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 3)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("scale", torch.ones(2))


def test_moving_a_module_keeps_its_parameters_and_ties() -> None:
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


def test_gradients_are_those_of_the_cpu() -> None:
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


def test_backward_from_many_threads_neither_hangs_nor_crashes() -> None:
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


def test_custom_functions_and_checkpoints_work() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).to(N)
    x = torch.randn(2, 4, device=N, requires_grad=True)
    checkpoint(model, x, use_reentrant=False).sum().backward()
    checkpoint(model, x, use_reentrant=True).sum().backward()
    y = torch.randn(2, device=N, requires_grad=True)
    doubled: Tensor = Doubling.apply(y)  # type: ignore[no-untyped-call]
    doubled.sum().backward()
    assert y.grad is not None
    same(y.grad, torch.full((2,), 2.0))


OPTIMIZERS: list[tuple[type[torch.optim.Optimizer], dict[str, Any]]] = [
    (torch.optim.AdamW, {"lr": 0.1}),
    (torch.optim.AdamW, {"lr": 0.1, "foreach": True}),
    (torch.optim.AdamW, {"lr": 0.1, "fused": True}),
    (torch.optim.SGD, {"lr": 0.01, "momentum": 0.9, "fused": True}),
]


@pytest.mark.parametrize(("kind", "options"), OPTIMIZERS, ids=["adamw", "adamw-foreach", "adamw-fused", "sgd-fused"])
def test_optimizers_step_as_on_the_cpu(kind: Any, options: dict[str, Any]) -> None:
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


@pytest.mark.parametrize("foreach", [None, True])
def test_gradients_can_be_clipped(foreach: bool | None) -> None:
    model = nn.Linear(2, 2).to(N)
    (model(torch.ones(1, 2, device=N)).sum() * 100).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=foreach)
    norm = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).norm().item()
    assert norm == pytest.approx(1.0, rel=1e-3)


def test_torch_accelerator_finds_the_device() -> None:
    accelerator = torch.accelerator.current_accelerator()
    assert accelerator is not None
    assert accelerator.type == N
    assert torch.accelerator.device_count() >= 1
    assert torch.accelerator.is_available()
    torch.accelerator.synchronize()


def test_allocated_memory_is_counted_to_the_byte() -> None:
    before = torch.get_device_module(N).memory_allocated()
    x = torch.empty(1000, device=N)
    y = x + 1
    assert torch.get_device_module(N).memory_allocated() - before == 8000
    del x, y
    assert torch.get_device_module(N).memory_allocated() == before
    assert torch.accelerator.memory_allocated() == before


def test_a_seed_repeats_the_devices_draws_whatever_the_cpu_drew() -> None:
    torch.manual_seed(3)
    first = torch.randn(4, device=N)
    torch.randn(3)
    torch.manual_seed(3)
    torch.randn(9)
    same(torch.randn(4, device=N), first)
    state = torch.get_device_module(N).get_rng_state()
    drawn = torch.rand(3, device=N)
    torch.get_device_module(N).set_rng_state(state)
    same(torch.rand(3, device=N), drawn)


def test_a_generator_on_the_device_repeats_its_draws() -> None:
    generator = torch.Generator(device=N)
    assert generator.device.type == N
    generator.manual_seed(1)
    first = torch.randn(3, device=N, generator=generator)
    generator.manual_seed(1)
    same(torch.randn(3, device=N, generator=generator), first)
    with pytest.raises(RuntimeError, match="generator"):
        torch.randn(3, device=N, generator=torch.Generator())


def test_dropout_is_bit_equal_to_the_cpus() -> None:
    x = torch.ones(1000)
    torch.manual_seed(0)
    expected = F.dropout(x, 0.3)
    torch.manual_seed(0)
    moved = x.to(N).requires_grad_()
    dropped = F.dropout(moved, 0.3)
    same(dropped, expected)
    dropped.sum().backward()
    assert moved.grad is not None
    same(moved.grad, expected)
    assert (F.dropout(moved, 0.3) != dropped).any()
    with torch.random.fork_rng(devices=[0], device_type=N):
        F.dropout(moved, 0.5)


def test_autocast_follows_the_lists() -> None:
    model = nn.Linear(4, 4).to(N)
    x = torch.randn(2, 4, device=N)
    with torch.autocast(N, dtype=torch.bfloat16):
        y = model(x)
        assert y.dtype == torch.bfloat16
        assert F.softmax(y, -1).dtype == torch.float32
        assert (y + 1).dtype == torch.bfloat16
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            F.binary_cross_entropy(torch.rand(2, device=N), torch.rand(2, device=N))
    y.float().sum().backward()
    assert model.weight.grad is not None
    assert model.weight.grad.dtype == torch.float32


def test_gradients_can_be_scaled() -> None:
    scaler = torch.amp.GradScaler(N, init_scale=8.0)
    model = nn.Linear(2, 2).to(N)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler.scale(model(torch.ones(1, 2, device=N)).sum()).backward()
    scaler.unscale_(optimizer)
    assert model.bias.grad is not None
    same(model.bias.grad, torch.ones(2))
    scaler.step(optimizer)
    scaler.update()


def test_attention_is_that_of_the_cpu() -> None:
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


def test_flex_attention_runs_eagerly() -> None:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    q = torch.randn(1, 2, 16, 8, device=N)
    flex_attention(q, q, q, score_mod=lambda score, *_: score)
    causal = create_block_mask(lambda _b, _h, i, j: i >= j, None, None, 16, 16, device=N)
    masked = flex_attention(q, q, q, block_mask=causal)
    same(masked, F.scaled_dot_product_attention(q, q, q, is_causal=True), 1e-5)


def test_convolution_pooling_and_batch_norm_are_those_of_the_cpu() -> None:
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


@pytest.mark.parametrize(
    "model",
    [nn.LSTM(4, 5, batch_first=True, bidirectional=True), nn.GRU(4, 5), nn.GRU(4, 5, bias=False), nn.RNN(4, 5)],
    ids=["lstm", "gru", "gru-without-bias", "rnn"],
)
def test_recurrent_layers_are_those_of_the_cpu(model: nn.Module) -> None:
    host, moved = twins(model)
    x = torch.randn(2, 3, 4)
    host(x)[0].pow(2).sum().backward()
    moved(x.to(N))[0].pow(2).sum().backward()
    for ours, theirs in zip(moved.parameters(), host.parameters(), strict=True):
        assert ours.grad is not None
        assert theirs.grad is not None
        same(ours.grad, theirs.grad, 1e-5)


def test_embedding_and_cross_entropy_train() -> None:
    embedding = nn.Embedding(10, 4).to(N)
    logits = embedding(torch.tensor([[1, 2]], device=N)).view(-1, 4)
    F.cross_entropy(logits, torch.tensor([0, 3], device=N)).backward()
    assert embedding.weight.grad is not None
    assert embedding.weight.grad.device.type == N


def test_tensors_survive_saving_with_their_device_and_their_views() -> None:
    x = torch.randn(3, 2, device=N)
    file = io.BytesIO()
    torch.save({"x": x, "view": x.t()}, file)
    file.seek(0)
    loaded = torch.load(file)
    assert loaded["x"].device.type == N
    same(loaded["x"], x)
    assert loaded["view"].untyped_storage().data_ptr() == loaded["x"].untyped_storage().data_ptr()
    file.seek(0)
    assert torch.load(file, map_location="cpu")["x"].device.type == "cpu"
    file = io.BytesIO()
    torch.save({"x": x.cpu()}, file)
    file.seek(0)
    assert torch.load(file, map_location=N)["x"].device.type == N


def test_state_dicts_move_between_device_cpu_and_safetensors(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    moved, host = nn.Linear(2, 2).to(N), nn.Linear(2, 2)
    host.load_state_dict(moved.state_dict())
    same(moved.weight, host.weight)
    moved.load_state_dict(host.state_dict())
    optimizer = torch.optim.AdamW(moved.parameters())
    moved(torch.ones(1, 2, device=N)).sum().backward()
    optimizer.step()
    torch.optim.AdamW(host.parameters()).load_state_dict(optimizer.state_dict())
    save_file(moved.state_dict(), tmp_path / "t.safetensors")
    same(load_file(tmp_path / "t.safetensors")["weight"], moved.weight)


def test_memory_can_be_pinned() -> None:
    pinned = torch.randn(3).pin_memory()
    assert pinned.is_pinned()
    assert not torch.randn(3).is_pinned()
    same(pinned.to(N, non_blocking=True), pinned)
    for (batch,) in DataLoader(TensorDataset(torch.randn(8, 2)), batch_size=4, pin_memory=True):
        assert batch.is_pinned()
        batch.to(N)


def test_a_loader_with_worker_processes_feeds_the_device() -> None:
    torch.randn(2, device=N)
    for (batch,) in DataLoader(TensorDataset(torch.randn(8, 2)), batch_size=4, num_workers=1):
        assert batch.to(N).device.type == N


def test_fake_tensors_know_the_device() -> None:
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        x = torch.randn(2, 3, device=N)
        y = x @ x.t()
        assert y.device.type == N
        assert y.shape == (2, 2)
        q = torch.randn(1, 1, 2, 8, device=N)
        F.scaled_dot_product_attention(q, q, q)


def test_tensors_and_modules_can_be_copied_and_pickled() -> None:
    x = torch.randn(3, device=N)
    y = copy.deepcopy(x)
    assert y.device.type == N
    assert y.data_ptr() != x.data_ptr()
    same(pickle.loads(pickle.dumps(x)), x)  # noqa: S301
    assert isinstance(copy.deepcopy(nn.Linear(2, 2).to(N)).weight, nn.Parameter)


def test_function_transforms_work() -> None:
    from torch.func import grad, jacrev, jvp, vmap

    x = torch.randn(3, 4, device=N)
    same(vmap(torch.dot)(x, x), (x * x).sum(1), 1e-5)
    same(grad(lambda a: (a**2).sum())(x), 2 * x)
    jvp(torch.sin, (x,), (x,))
    jacrev(torch.sin)(x[0])


def test_complex_and_double_tensors_are_those_of_the_cpu() -> None:
    host = torch.randn(3, dtype=torch.complex64)
    moved = host.to(N)
    same(moved * moved.conj(), host * host.conj(), 1e-6)
    same(torch.view_as_real(moved), torch.view_as_real(host))
    moved.real.zero_()
    same(moved.real, torch.zeros(3))
    same(moved.conj().cpu(), moved.cpu().conj())
    moved.conj().resolve_conj().imag.neg()
    doubles = torch.randn(8, dtype=torch.float64)
    same(torch.fft.rfft(doubles.to(N)), torch.fft.rfft(doubles), 1e-9)
    torch.polar(doubles.to(N).abs(), doubles.to(N))
    same(torch.linalg.inv(torch.eye(3, device=N)), torch.eye(3))


def test_sparse_tensors_are_a_clean_error() -> None:
    index = torch.tensor([[0, 1], [1, 0]], device=N)
    with pytest.raises((NotImplementedError, RuntimeError)):
        torch.sparse_coo_tensor(index, torch.ones(2, device=N), (2, 2)).to_dense()


def test_operators_with_data_dependent_results_work() -> None:
    x = torch.tensor([0.0, 1, 2], device=N)
    assert x.nonzero().shape == (2, 1)
    assert x.masked_select(x > 0).tolist() == [1, 2]
    assert x[x > 0].shape == (2,)
    assert x.sum().item() == 3
    assert bool((x >= 0).all())
    assert x.unique().tolist() == [0, 1, 2]
    assert torch.where(x > 0)[0].tolist() == [1, 2]
    assert torch.repeat_interleave(x, 2).shape == (6,)
    assert torch.bincount(x.long()).tolist() == [1, 1, 1]
    assert torch.equal(x, x)
    assert int(x.argmax()) == 2


def test_numpy_refuses_a_tensor_on_the_device() -> None:
    with pytest.raises(TypeError, match="host memory"):
        torch.ones(2, device=N).numpy()
    assert isinstance(torch.ones(2, device=N).cpu().numpy(), np.ndarray)


def test_mixed_devices_are_an_error_unless_the_other_is_a_scalar() -> None:
    with pytest.raises(RuntimeError, match="Non-scalar tensor arg1 is on cpu device, expected neuron"):
        torch.ones(2, device=N) + torch.ones(2)
    with pytest.raises(RuntimeError, match="is on cpu device, expected neuron"):
        F.linear(torch.ones(1, 2, device=N), torch.ones(2, 2))
    torch.ones(2, device=N) + torch.tensor(1.0)
    assert torch.ones(2, device=N)[torch.tensor([0])].shape == (1,)


def test_two_indices_are_two_devices() -> None:
    first, second = torch.ones(2, device="neuron:0"), torch.ones(2, device="neuron:1")
    assert second.device.index == 1
    with pytest.raises(RuntimeError, match="at least two devices"):
        first + second
    same(first.to("neuron:1") + second, torch.full((2,), 2.0))
    with torch.get_device_module(N).device(1):
        assert torch.ones(1, device=N).device.index == 1
    assert torch.get_device_module(N).current_device() == 0


def test_an_index_out_of_range_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="invalid device ordinal 63"):
        torch.ones(1, device="neuron:63")
    with pytest.raises(RuntimeError, match="invalid device ordinal 63"):
        torch.get_device_module(N).set_device(63)


def test_custom_operators_run_and_return_to_the_device() -> None:
    @torch.library.custom_op("neuronqa_test::double", mutates_args=())
    def double(x: Tensor) -> Tensor:
        return x * 2

    @torch.library.custom_op("neuronqa_test::host_double", mutates_args=(), device_types="cpu")
    def host_double(x: Tensor) -> Tensor:
        assert x.device.type == "cpu"
        return x * 2

    x = torch.ones(2, device=N)
    same(double(x), torch.full((2,), 2.0))
    assert host_double(x).device.type == N


def test_the_profiler_sees_operators() -> None:
    from torch.profiler import profile

    with profile() as profiler:
        torch.ones(2, device=N) + 1
    assert any("add" in event.key for event in profiler.key_averages())


def test_dispatch_modes_see_operators() -> None:
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import FlopCounterMode

    seen: list[str] = []

    class Listing(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            del types
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, 2, device=N, requires_grad=True)
    with Listing():  # type: ignore[no-untyped-call]
        (x @ x).sum().backward()
    assert any("mm" in name for name in seen)
    with FlopCounterMode(display=False) as counter:
        x @ x
    assert counter.get_total_flops() == 16


def test_streams_and_events_exist() -> None:
    stream = torch.Stream(device=N)
    start, end = torch.Event(device=N, enable_timing=True), torch.Event(device=N, enable_timing=True)
    start.record()
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 0
    torch.accelerator.current_stream()
    stream.synchronize()


def test_the_device_can_be_the_default() -> None:
    with torch.device(N):
        assert torch.ones(2).device.type == N
        assert nn.Linear(2, 2).weight.device.type == N


def test_a_meta_module_can_be_materialised() -> None:
    with torch.device("meta"):
        model = nn.Linear(2, 2)
    model.to_empty(device=N)
    assert model.weight.device.type == N
    nn.init.normal_(model.weight)


def test_sharing_memory_between_processes_is_answered() -> None:
    assert isinstance(torch.ones(2, device=N).is_shared(), bool)
