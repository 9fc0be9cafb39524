"""Tensors on the device: made, moved, viewed, counted, drawn, refused."""

from __future__ import annotations

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuronqa.device.neuron.build import MODULE
from neuronqa.device.neuron.selftest.behaviour import N, api, behaviour, our_behaviour, refuses, same


@behaviour
def the_device_type_has_its_name() -> None:
    assert torch.device(N).type == N


@behaviour
def factories_make_tensors_on_the_device() -> None:
    made = [
        torch.randn(2, 3, device=N),
        torch.arange(5, device=N),
        torch.full((2,), 1.0, device=N),
        torch.zeros(2, device=N),
        torch.eye(3, device=N),
        torch.tensor([1, 2], device=N),
        torch.randint(0, 5, (3,), device=N),
        torch.randperm(4, device=N),
        torch.linspace(0, 1, 3, device=N),
    ]
    assert {tensor.device.type for tensor in made} == {N}
    assert all("neuron" in repr(tensor) for tensor in made)


@behaviour
def tensors_move_to_the_device_and_back() -> None:
    host = torch.randn(3, 4)
    moved = host.to(N)
    assert moved.device.type == N
    assert moved.cpu().device.type == "cpu"
    assert type(moved.cpu()) is Tensor
    same(moved, host)
    same(host.t().to(N), host.t())
    same(moved.to(torch.bfloat16), host.bfloat16())


@behaviour
def copies_do_not_share_memory() -> None:
    host = torch.randn(3)
    moved = torch.empty(3, device=N)
    moved.copy_(host)
    clone = moved.clone()
    clone.add_(1)
    same(moved, host)
    back = torch.empty(3)
    back.copy_(moved)
    same(back, host)


@behaviour
def views_share_memory_and_know_their_base() -> None:
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


@behaviour
def in_place_out_and_list_operators_work() -> None:
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


@behaviour
def complex_and_double_tensors_are_those_of_the_cpu() -> None:
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


@our_behaviour
def sparse_tensors_are_a_clean_error() -> None:
    index = torch.tensor([[0, 1], [1, 0]], device=N)
    with refuses(NotImplementedError, RuntimeError):
        torch.sparse_coo_tensor(index, torch.ones(2, device=N), (2, 2)).to_dense()


@behaviour
def operators_with_data_dependent_results_work() -> None:
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


@behaviour
def numpy_refuses_a_tensor_on_the_device() -> None:
    with refuses(TypeError, words="host memory"):
        torch.ones(2, device=N).numpy()
    assert isinstance(torch.ones(2, device=N).cpu().numpy(), np.ndarray)


@behaviour
def mixed_devices_are_an_error_unless_the_other_is_a_scalar() -> None:
    with refuses(RuntimeError, words="Non-scalar tensor arg1 is on cpu device, expected neuron"):
        torch.ones(2, device=N) + torch.ones(2)
    with refuses(RuntimeError, words="is on cpu device, expected neuron"):
        F.linear(torch.ones(1, 2, device=N), torch.ones(2, 2))
    torch.ones(2, device=N) + torch.tensor(1.0)
    assert torch.ones(2, device=N)[torch.tensor([0])].shape == (1,)


@our_behaviour
def two_indices_are_two_devices() -> None:
    first, second = torch.ones(2, device="neuron:0"), torch.ones(2, device="neuron:1")
    assert second.device.index == 1
    with refuses(RuntimeError, words="at least two devices"):
        first + second
    same(first.to("neuron:1") + second, torch.full((2,), 2.0))
    with api().device(1):
        assert torch.ones(1, device=N).device.index == 1
    assert api().current_device() == 0


@behaviour
def an_index_out_of_range_is_an_error() -> None:
    with refuses(RuntimeError, words="invalid device ordinal 63"):
        torch.ones(1, device="neuron:63")
    with refuses(RuntimeError, words="invalid device ordinal 63"):
        api().set_device(63)


@behaviour
def streams_and_events_exist() -> None:
    stream = torch.Stream(device=N)
    start, end = torch.Event(device=N, enable_timing=True), torch.Event(device=N, enable_timing=True)
    start.record()
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 0
    torch.accelerator.current_stream()
    stream.synchronize()


@behaviour
def the_device_can_be_the_default() -> None:
    with torch.device(N):
        assert torch.ones(2).device.type == N
        assert nn.Linear(2, 2).weight.device.type == N


@our_behaviour
def allocated_memory_is_counted_to_the_byte() -> None:
    before = api().memory_allocated()
    x = torch.empty(1000, device=N)
    y = x + 1
    assert api().memory_allocated() - before == 8000
    del x, y
    assert api().memory_allocated() == before
    assert torch.accelerator.memory_allocated() == before


@behaviour
def a_seed_repeats_the_devices_draws_whatever_the_cpu_drew() -> None:
    torch.manual_seed(3)
    first = torch.randn(4, device=N)
    torch.randn(3)
    torch.manual_seed(3)
    torch.randn(9)
    same(torch.randn(4, device=N), first)
    state = api().get_rng_state()
    drawn = torch.rand(3, device=N)
    api().set_rng_state(state)
    same(torch.rand(3, device=N), drawn)


@behaviour
def a_generator_on_the_device_repeats_its_draws() -> None:
    generator = torch.Generator(device=N)
    assert generator.device.type == N
    generator.manual_seed(1)
    first = torch.randn(3, device=N, generator=generator)
    generator.manual_seed(1)
    same(torch.randn(3, device=N, generator=generator), first)
    with refuses(RuntimeError, words="generator"):
        torch.randn(3, device=N, generator=torch.Generator())


@our_behaviour
def dropout_is_bit_equal_to_the_cpus() -> None:
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


@our_behaviour
def sharing_memory_between_processes_is_answered() -> None:
    assert isinstance(torch.ones(2, device=N).is_shared(), bool)


@behaviour
def torch_accelerator_finds_the_device() -> None:
    accelerator = torch.accelerator.current_accelerator()
    assert accelerator is not None
    assert accelerator.type == N
    assert torch.accelerator.device_count() >= 1
    assert torch.accelerator.is_available()
    torch.accelerator.synchronize()


@our_behaviour
def an_operator_that_is_switched_off_is_an_error_that_names_it() -> None:
    shim = sys.modules[MODULE]
    shim.support("aten::cumsum", shim.Mechanism.UNSUPPORTED)
    with refuses(NotImplementedError, words="Operation aten::cumsum is not implemented for Neuron"):
        torch.ones(2, device=N).cumsum(0)
