"""Operators the profile does not support, values it cannot hold, and how both show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuronqa.device.neuron.adapter import NeuronDevice
from neuronqa.domain.observation import OpUse, Placement

pytestmark = pytest.mark.device(profile="trn2-sdk2.33")

N = "neuron"


def uses(device: NeuronDevice, function: Callable[[], Any]) -> dict[str, OpUse]:
    """What `function` used, by operator and dtype-free; the last one wins where there are several."""
    recording = device.recording()
    recording.start()
    function()
    recording.stop()
    assert recording.complete
    return {use.op: use for use in recording.ops()}


def test_a_native_operator_moves_nothing(device: NeuronDevice) -> None:
    x = torch.ones(2, 3, device=N)
    use = uses(device, lambda: x @ x.t())["aten::mm"]
    assert (use.placement, use.mechanism, use.nbytes, use.count) == (Placement.NATIVE, 0, 0, 1)
    assert (use.dtype, use.shapes) == ("float32", ((2, 3), (3, 2)))
    assert use.ns > 0


def test_an_operator_without_kernel_falls_back_and_is_counted_with_its_bytes(device: NeuronDevice) -> None:
    x = torch.ones(2, 3, device=N)

    def twice() -> None:
        torch.maximum(x, x)
        torch.maximum(x.t(), x.t())

    use = uses(device, twice)["aten::maximum"]
    assert (use.placement, use.mechanism, use.reported) == (Placement.CPU, 1, True)
    assert (use.count, use.nbytes, use.shapes) == (2, 2 * 3 * 24, ((2, 3), (2, 3)))


def test_a_kernel_that_copies_to_the_cpu_is_a_hidden_fallback(device: NeuronDevice) -> None:
    use = uses(device, lambda: torch.linalg.qr(torch.eye(3, device=N)))["aten::linalg_qr"]
    assert (use.placement, use.mechanism, use.reported) == (Placement.CPU, 4, False)


@pytest.mark.parametrize(
    ("function", "op", "mechanism"),
    [
        (lambda x: x.int() @ x.int().t(), "aten::mm", 3),
        (lambda x: x.long()[torch.tensor([0])], "aten::index.Tensor", 2),
        (lambda x: x.half().remainder(2), "aten::remainder.Tensor", 2),
        (lambda x: x.to(torch.complex64) * 2, "aten::mul.Tensor", 3),
        (lambda x: x.int().topk(1), "aten::topk", 3),
        (lambda x: x[0].long().scatter_add_(0, x[0].long(), x[0].long()), "aten::scatter_add_", 3),
    ],
    ids=["integer-dot", "int64-index", "half-remainder", "complex", "integer-topk", "integer-scatter"],
)
def test_arguments_a_kernel_refuses_fall_back_by_the_documented_way(
    device: NeuronDevice, function: Any, op: str, mechanism: int
) -> None:
    x = torch.ones(3, 3, device=N)
    assert uses(device, lambda: function(x))[op].mechanism == mechanism


def test_the_parts_of_a_composed_operator_are_what_is_recorded(device: NeuronDevice) -> None:
    model = nn.GroupNorm(2, 4).to(N)
    seen = uses(device, lambda: model(torch.randn(2, 4, 3, device=N)))
    assert "aten::native_group_norm" not in seen
    assert seen["aten::var_mean.correction"].mechanism == 1


def test_sorting_falls_back_where_a_stable_argsort_does_not(device: NeuronDevice) -> None:
    x = torch.randn(4, device=N)
    assert uses(device, lambda: torch.argsort(x, stable=True))["aten::argsort.stable"].mechanism == 0
    assert uses(device, lambda: torch.sort(x))["aten::sort.stable"].mechanism == 1


def test_a_decoder_layer_trains_without_fallback(device: NeuronDevice) -> None:
    torch.manual_seed(0)
    model = nn.ModuleDict(
        {"in": nn.Embedding(20, 8), "norm": nn.LayerNorm(8), "mix": nn.Linear(8, 8), "out": nn.Linear(8, 20)}
    )
    model.to(N)
    tokens = torch.tensor([[1, 2, 3, 4]], device=N)
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        x = model["norm"](model["in"](tokens))
        q = model["mix"](x)[:, None]
        x = x + F.scaled_dot_product_attention(q, q, q, is_causal=True)[:, 0]
        logits = model["out"](F.silu(x))
        F.cross_entropy(logits.view(-1, 20), tokens.view(-1)).backward()
        optimizer.step()

    fallbacks = {op for op, use in uses(device, step).items() if use.placement is Placement.CPU}
    assert fallbacks == set()


def test_a_fused_recurrent_cell_has_no_kernel_anywhere() -> None:
    with pytest.raises(RuntimeError, match="CPU fallback failed for 'aten::_thnn_fused_lstm_cell' failed"):
        nn.LSTM(4, 5).to(N)(torch.randn(3, 2, 4, device=N))


def test_int64_is_computed_as_int32() -> None:
    big = torch.tensor([2**31 + 5, -(2**31) - 7, 3], device=N)
    assert big.cpu().tolist() == [2**31 + 5, -(2**31) - 7, 3]
    assert (big + 1).tolist() == [-(2**31) + 6, 2**31 - 6, 4]
    assert (torch.tensor([2**20], device=N) * 2**20).tolist() == [0]
    big.add_(1)
    assert big.tolist() == [-(2**31) + 6, 2**31 - 6, 4]
    assert torch.tensor(2**40, device=N).item() == 2**40


def test_float64_carries_the_precision_of_float32() -> None:
    third = torch.tensor([1.0], dtype=torch.float64, device=N) / 3
    assert third.dtype == torch.float64
    assert third.item() == torch.tensor(1 / 3, dtype=torch.float32).item()
    assert torch.isinf(torch.tensor([1e300], dtype=torch.float64, device=N) * 1).all()


@pytest.mark.device(profile="ideal")
def test_the_ideal_profile_keeps_every_value_and_falls_back_never(device: NeuronDevice) -> None:
    assert (torch.tensor([2**40], device=N) + 1).tolist() == [2**40 + 1]
    third = torch.tensor([1.0], dtype=torch.float64, device=N) / 3
    assert third.item() == 1 / 3

    def anything() -> None:
        torch.linalg.qr(torch.eye(3, device=N))
        torch.sort(torch.randn(3, device=N))
        F.max_pool2d(torch.randn(1, 1, 4, 4, device=N), 2)

    assert all(use.placement is Placement.NATIVE for use in uses(device, anything).values())


def test_only_contiguous_memory_formats_exist() -> None:
    x = torch.ones(1, 2, 3, 4, device=N)
    with pytest.raises(RuntimeError, match="Neuron tensors only support contiguous or preserve memory format"):
        x.contiguous(memory_format=torch.channels_last)
    with pytest.raises(RuntimeError, match="Neuron tensors only support contiguous or preserve memory format"):
        x.to(memory_format=torch.channels_last)
    assert x.permute(0, 2, 3, 1).contiguous().is_contiguous()


class Images(torch.nn.Module):
    """Convolutions between layers that put channels last, as ConvNeXt has them."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(4)
        self.convolution = torch.nn.Conv2d(4, 8, 3, padding=1)
        self.groups = torch.nn.GroupNorm(2, 8)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        x = self.groups(self.convolution(x))
        return F.interpolate(x, scale_factor=2, mode="bilinear")


def test_a_convolution_of_channels_last_is_contiguous_in_both_modes() -> None:
    model, x = Images().to(N), torch.randn(2, 4, 8, 8, device=N)
    eager = model(x)
    eager.sum().backward()
    compiled = torch.compile(model, backend="neuron", fullgraph=True)(x)
    compiled.sum().backward()
    assert eager.is_contiguous()
    torch.testing.assert_close(compiled, eager)


def test_a_graph_lays_memory_out_as_it_was_traced() -> None:
    def channels_last(x: Tensor, weight: Tensor) -> Tensor:
        moved = F.conv2d(x.to(memory_format=torch.channels_last), weight)
        return torch.empty_like(moved, memory_format=torch.channels_last).fill_(2) * moved

    x, weight = torch.randn(2, 4, 8, 8), torch.randn(4, 4, 1, 1)
    compiled = torch.compile(channels_last, backend="neuron", fullgraph=True)
    torch.testing.assert_close(compiled(x.to(N), weight.to(N)).cpu(), channels_last(x, weight))


def test_the_real_trackers_list_what_they_would_and_forget_on_request(device: NeuronDevice) -> None:
    from neuronqa.device.neuron import neuronx

    module = neuronx.make(device.shim)
    x = torch.eye(3, device=N)
    recording = device.recording()
    recording.start()
    torch.maximum(x, x)
    torch.linalg.qr(x)
    x @ x
    assert "aten::maximum" in module.get_fallback_ops()
    assert "aten::mm" in module.get_executed_ops()
    assert not any("linalg_qr" in name for name in module.get_fallback_ops() + module.get_executed_ops())
    module.clear_op_tracking()
    assert module.get_fallback_ops() == []
    assert {use.op for use in recording.ops() if use.mechanism} == {"aten::maximum", "aten::linalg_qr"}


@pytest.mark.device(profile="trn2-sdk2.33", forced_cpu=("aten::mm",))
def test_a_forced_operator_runs_on_the_cpu(device: NeuronDevice) -> None:
    x = torch.eye(3, device=N)
    assert uses(device, lambda: x @ x)["aten::mm"].mechanism == 3


@pytest.mark.device(profile="trn2-sdk2.33", forced_cpu=("aten::mm",), fault={"kind": "raise"})
def test_a_forced_operator_escapes_its_fault() -> None:
    x = torch.eye(3, device=N)
    torch.testing.assert_close((x @ x).cpu(), torch.eye(3))


NO_FALLBACK = {"TORCH_NEURONX_FALLBACK_ONLY_FOR_UNIMPLEMENTED_OPS": "1"}


@pytest.mark.device(profile="trn2-sdk2.33", environment=NO_FALLBACK)
def test_refused_arguments_are_an_error_when_fallback_is_off(device: NeuronDevice) -> None:
    x = torch.ones(3, 3, dtype=torch.int32, device=N)
    x @ x
    with pytest.raises(RuntimeError, match="CPU fallback is disabled for operation=aten::mm") as caught:
        device.synchronize()
    assert device.error_code(caught.value) == "NCC_EVRF035"
    device.synchronize()
    with pytest.raises(RuntimeError, match=r"Operation aten::index\.Tensor failed to execute on Neuron"):
        x.long()[torch.tensor([0])]
    torch.maximum(x, x)


@pytest.mark.device(profile="trn2-sdk2.33", environment={**NO_FALLBACK, "NEURON_LAUNCH_BLOCKING": "1"})
def test_blocking_launches_raise_where_the_error_arises() -> None:
    x = torch.ones(3, 3, dtype=torch.int32, device=N)
    with pytest.raises(RuntimeError, match="CPU fallback is disabled for operation=aten::mm"):
        x @ x


@pytest.mark.device(profile="trn2-sdk2.33", environment={"NEURON_RT_NUM_CORES": "2"})
def test_the_number_of_cores_can_be_set() -> None:
    assert torch.get_device_module(N).device_count() == 2


def test_device_memory_has_a_limit(device: NeuronDevice) -> None:
    device.shim.settings().memory_limit = 1 << 20
    with pytest.raises(torch.OutOfMemoryError, match="NRT status 4"):
        torch.empty(1 << 20, device=N)
    torch.empty(1 << 10, device=N)


def test_an_unsupported_operator_is_an_error_that_names_it(device: NeuronDevice) -> None:
    device.shim.support("aten::cumsum", device.shim.Mechanism.UNSUPPORTED)
    with pytest.raises(NotImplementedError, match="Operation aten::cumsum is not implemented for Neuron"):
        torch.ones(2, device=N).cumsum(0)
    assert device.failed_op() == "aten::cumsum"


def test_an_operator_nobody_implements_is_a_clean_error() -> None:
    library = torch.library.Library("neuronqa_nowhere", "DEF")
    library.define("op(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="no kernel there, and none on the CPU"):
        torch.ops.neuronqa_nowhere.op(torch.ones(1, device=N))


def test_code_of_a_chained_error_is_found(device: NeuronDevice) -> None:
    inner = RuntimeError("[NCC_EVRF035] integer dot")
    outer = ValueError("while compiling")
    outer.__cause__ = inner
    assert device.error_code(outer) == "NCC_EVRF035"
    assert device.error_code(ValueError("plain")) == ""
    assert device.error_code(RuntimeError("NRT EXECUTION FAILED: NRT status 1003")) == "NRT 1003"


def test_results_of_unusual_kinds_are_refused_cleanly() -> None:
    x: Tensor = torch.ones(2, 2, device=N)
    with pytest.raises((NotImplementedError, RuntimeError)):
        x.to_sparse()
    with pytest.raises((NotImplementedError, RuntimeError)):
        torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)


def test_set_refuses_a_storage_of_another_device() -> None:
    with pytest.raises(RuntimeError, match="devices must match"):
        torch.empty(0, device=N).set_(torch.ones(2).untyped_storage())


def test_memory_that_a_kernel_replaced_is_the_tensors_own_and_its_views_follow(device: NeuronDevice) -> None:
    del device
    x = torch.arange(8.0, device=N)
    view = x[2:]
    x.resize_(4096)
    view.mul_(2)
    assert x[:8].tolist() == [0.0, 1.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]
