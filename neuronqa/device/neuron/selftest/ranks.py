"""Several processes with a device each: collectives, data parallel, sharded, DTensor and tensor parallel."""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from neuronqa.device.neuron.selftest.behaviour import BEHAVIOURS, LIBRARIES, RANKED, N, ranked_behaviour, same
from neuronqa.device.neuron.selftest.forked import Ended, together


def run(name: str, load: Callable[[], None]) -> Ended:
    """Run a ranked behaviour: every rank in a forked child that loads the device. The caller must not have one."""
    size = RANKED[name]
    with tempfile.TemporaryDirectory() as folder:
        ranks = [partial(_play, name, rank, size, f"file://{folder}/store", load) for rank in range(size)]
        ended = together(ranks)
    return next((one for one in ended if one.error), ended[0])


def _play(name: str, rank: int, size: int, store: str, load: Callable[[], None]) -> str:
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size}
    os.environ.update({key: str(value) for key, value in numbers.items()})
    torch.set_num_threads(1)
    load()
    dist.init_process_group("neuron", init_method=store, rank=rank, world_size=size)
    torch.manual_seed(0)
    BEHAVIOURS[name]()
    dist.barrier()
    dist.destroy_process_group()
    return ""


def _mesh() -> Any:
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh(N, (dist.get_world_size(),))


def _two_layers() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))


@ranked_behaviour(2, 4)
def collectives_move_tensors_between_devices() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    assert torch.get_device_module(N).current_device() == rank
    x = torch.full((3,), float(rank + 1), device=N)
    dist.all_reduce(x)
    assert x.tolist() == [size * (size + 1) / 2] * 3
    x = torch.full((2,), float(rank), device=N)
    dist.broadcast(x, size - 1)
    assert x.tolist() == [size - 1.0] * 2
    gathered = [torch.empty(1, device=N) for _ in range(size)]
    dist.all_gather(gathered, torch.full((1,), float(rank), device=N))
    assert [one.item() for one in gathered] == list(range(size))
    part = torch.empty(1, device=N)
    dist.reduce_scatter_tensor(part, torch.arange(float(size), device=N))
    assert part.item() == rank * size
    swapped = torch.empty(size, device=N)
    dist.all_to_all_single(swapped, torch.arange(float(size), device=N) + 10 * rank)
    assert swapped.tolist() == [10.0 * other + rank for other in range(size)]
    waiting = dist.all_reduce(part, async_op=True)
    assert waiting is not None
    waiting.wait()
    assert part.device == torch.device(N, rank)


@ranked_behaviour(2, 4)
def messages_and_objects_travel() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    x = torch.full((2,), float(rank), device=N)
    if rank == 0:
        dist.send(x + 7, 1)
    elif rank == 1:
        dist.recv(x, 0)
        assert x.tolist() == [7.0, 7.0]
    told: list[Any] = [None] * size
    dist.all_gather_object(told, {"rank": rank})
    assert [one["rank"] for one in told] == list(range(size))


def _shares(x: Tensor) -> Tensor:
    return x.chunk(dist.get_world_size())[dist.get_rank()]


@ranked_behaviour(2, 4)
def data_parallel_gradients_are_the_means() -> None:
    model, x = _two_layers(), torch.randn(8, 4)
    parallel = nn.parallel.DistributedDataParallel(copy.deepcopy(model).to(N))
    parallel(_shares(x).to(N)).square().mean().backward()
    model(x).square().mean().backward()
    for ours, theirs in zip(parallel.parameters(), model.parameters(), strict=True):
        assert ours.grad is not None
        assert theirs.grad is not None
        same(ours.grad, theirs.grad, 1e-6)


@ranked_behaviour(2, 4)
def fully_sharded_models_train_as_whole_ones() -> None:
    from torch.distributed.fsdp import fully_shard

    model, x = _two_layers(), torch.randn(8, 4)
    sharded: Any = copy.deepcopy(model).to(N)
    for layer in (sharded[0], sharded[2], sharded):
        fully_shard(layer, mesh=_mesh())
    optimizers = [torch.optim.AdamW(one.parameters(), lr=0.1) for one in (sharded, model)]
    for _ in range(3):
        for optimizer in optimizers:
            optimizer.zero_grad()
        sharded(_shares(x).to(N)).square().mean().backward()
        model(x).square().mean().backward()
        for optimizer in optimizers:
            optimizer.step()
    for ours, theirs in zip(sharded.parameters(), model.parameters(), strict=True):
        same(ours.full_tensor(), theirs, 1e-4)


@ranked_behaviour(2, 4)
def distributed_tensors_multiply() -> None:
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    a, b = torch.randn(8, 4), torch.randn(4, 3)
    rows = distribute_tensor(a.to(N), _mesh(), [Shard(0)])
    product: Any = rows @ distribute_tensor(b.to(N), _mesh(), [Replicate()])
    assert product.to_local().shape == (8 // dist.get_world_size(), 3)
    same(product.full_tensor(), a @ b, 1e-6)


@ranked_behaviour(2, 4)
def tensor_parallel_layers_give_the_whole_result() -> None:
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    model, x = _two_layers(), torch.randn(3, 4)
    parallel: Any = copy.deepcopy(model).to(N)
    parallelize_module(parallel, _mesh(), {"0": ColwiseParallel(), "2": RowwiseParallel()})
    result = parallel(x.to(N))
    result.square().sum().backward()
    expected = model(x)
    expected.square().sum().backward()
    same(result, expected, 1e-6)
    weight: Any = model[0].weight
    same(parallel[0].weight.grad.full_tensor(), weight.grad, 1e-5)


@ranked_behaviour(2)
def accelerate_trains_data_parallel() -> None:
    from accelerate import Accelerator
    from accelerate.utils import DistributedType

    accelerator = Accelerator()
    assert accelerator.distributed_type is DistributedType.MULTI_NEURON
    model: Any = _two_layers()
    optimizer: Any = torch.optim.AdamW(model.parameters())
    model, optimizer = accelerator.prepare(model, optimizer)
    assert isinstance(model, nn.parallel.DistributedDataParallel)
    accelerator.backward(model(torch.ones(1, 4, device=accelerator.device)).sum())
    optimizer.step()


LIBRARIES.add("accelerate_trains_data_parallel_on_2_ranks")
