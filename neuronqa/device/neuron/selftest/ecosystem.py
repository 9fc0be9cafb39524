"""The rest of PyTorch on the device: files, loaders, fake tensors, transforms, modes, compilers."""

from __future__ import annotations

import copy
import io
import pickle
import tempfile
from typing import Any

import torch
import torch._dynamo
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from neuronqa.device.neuron.selftest.behaviour import N, backend, behaviour, compiled_behaviour, same


@behaviour
def tensors_survive_saving_with_their_device_and_their_views() -> None:
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


@behaviour
def state_dicts_move_between_device_cpu_and_safetensors() -> None:
    from safetensors.torch import load_file, save_file

    moved, host = nn.Linear(2, 2).to(N), nn.Linear(2, 2)
    host.load_state_dict(moved.state_dict())
    same(moved.weight, host.weight)
    moved.load_state_dict(host.state_dict())
    optimizer = torch.optim.AdamW(moved.parameters())
    moved(torch.ones(1, 2, device=N)).sum().backward()
    optimizer.step()
    torch.optim.AdamW(host.parameters()).load_state_dict(optimizer.state_dict())
    with tempfile.TemporaryDirectory() as folder:
        save_file(moved.state_dict(), f"{folder}/t.safetensors")
        same(load_file(f"{folder}/t.safetensors")["weight"], moved.weight)


@behaviour
def memory_can_be_pinned() -> None:
    pinned = torch.randn(3).pin_memory()
    assert pinned.is_pinned()
    assert not torch.randn(3).is_pinned()
    same(pinned.to(N, non_blocking=True), pinned)


@behaviour
def a_loader_pins_its_batches() -> None:
    for (batch,) in DataLoader(TensorDataset(torch.randn(8, 2)), batch_size=4, pin_memory=True):
        assert batch.is_pinned()
        batch.to(N)


@behaviour
def a_loader_with_worker_processes_feeds_the_device() -> None:
    torch.randn(2, device=N)
    for (batch,) in DataLoader(TensorDataset(torch.randn(8, 2)), batch_size=4, num_workers=1):
        assert batch.to(N).device.type == N


@behaviour
def fake_tensors_know_the_device() -> None:
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        x = torch.randn(2, 3, device=N)
        y = x @ x.t()
        assert y.device.type == N
        assert y.shape == (2, 2)
        q = torch.randn(1, 1, 2, 8, device=N)
        F.scaled_dot_product_attention(q, q, q)


@behaviour
def tensors_and_modules_can_be_copied_and_pickled() -> None:
    x = torch.randn(3, device=N)
    y = copy.deepcopy(x)
    assert y.device.type == N
    assert y.data_ptr() != x.data_ptr()
    same(pickle.loads(pickle.dumps(x)), x)  # noqa: S301
    assert isinstance(copy.deepcopy(nn.Linear(2, 2).to(N)).weight, nn.Parameter)


@behaviour
def function_transforms_work() -> None:
    from torch.func import grad, jacrev, jvp, vmap

    x = torch.randn(3, 4, device=N)
    same(vmap(torch.dot)(x, x), (x * x).sum(1), 1e-5)
    same(grad(lambda a: (a**2).sum())(x), 2 * x)
    jvp(torch.sin, (x,), (x,))
    jacrev(torch.sin)(x[0])


@behaviour
def custom_operators_run_and_return_to_the_device() -> None:
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


@behaviour
def the_profiler_sees_operators() -> None:
    from torch.profiler import profile

    with profile() as profiler:
        torch.ones(2, device=N) + 1
    assert any("add" in event.key for event in profiler.key_averages())


@behaviour
def dispatch_modes_see_operators() -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

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


@behaviour
def floating_point_operations_can_be_counted() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    x = torch.ones(2, 2, device=N)
    with FlopCounterMode(display=False) as counter:
        x @ x
    assert counter.get_total_flops() == 16


def _small() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 2)).to(N)


@compiled_behaviour
def a_compiled_module_gives_the_eager_results_and_gradients() -> None:
    model, x = _small(), torch.randn(3, 4, device=N)
    expected = model(x).detach()
    compiled = torch.compile(model, backend=backend())
    result = compiled(x)
    same(result, expected, 1e-6)
    result.sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@compiled_behaviour
def dropout_under_autocast_compiles_as_one_graph() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).to(N)

    def forward(x: Tensor) -> Tensor:
        with torch.autocast(N, dtype=torch.bfloat16):
            result: Tensor = model(x)
            return result

    y = torch.compile(forward, backend=backend(), fullgraph=True)(torch.randn(3, 4, device=N))
    y.float().sum().backward()
    assert y.dtype == torch.bfloat16


@compiled_behaviour
def graph_breaks_are_explained() -> None:
    def broken(x: Tensor) -> Tensor:
        x = x + 1
        torch._dynamo.graph_break()
        return x * 2

    explained = torch._dynamo.explain(broken)(torch.ones(3, device=N))
    assert explained.graph_break_count == 1
    assert explained.break_reasons[0].reason


@behaviour
def each_shape_is_compiled_once() -> None:
    seen: list[Any] = []

    def listen(module: torch.fx.GraphModule, inputs: Any) -> Any:
        seen.append(inputs)
        return module.forward

    double = torch.compile(lambda x: x * 2, backend=listen)
    for size in (2, 3, 2, 3):
        double(torch.ones(size, device=N))
    double(torch.ones(2))
    assert len(seen) == 3


@compiled_behaviour
def modules_can_be_exported() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).to(N)
    program = torch.export.export(model, (torch.randn(2, 4, device=N),))
    program.run_decompositions()
    x = torch.ones(2, 4, device=N)
    same(program.module()(x), model(x))
