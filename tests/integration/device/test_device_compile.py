"""`torch.compile` on the device: captured, refused, counted, executed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch._dynamo
from torch import Tensor, nn
from torch._dynamo.exc import BackendCompilerFailed

from neuronqa.device.neuron.adapter import NeuronDevice
from neuronqa.device.neuron.compiler.errors import NeuronCompileError

pytestmark = pytest.mark.device(profile="trn2-sdk2.33")

N = "neuron"


def small() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 2)).to(N)


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return torch.compile(function, backend="neuron", **options)


def test_a_compiled_model_gives_the_eager_results_and_gradients(device: NeuronDevice) -> None:
    model, x = small(), torch.randn(3, 4, device=N)
    eager = model(x)
    eager.sum().backward()
    grads = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    result = compiled(model)(x)
    result.sum().backward()
    torch.testing.assert_close(result, eager)
    for parameter, grad in zip(model.parameters(), grads, strict=True):
        torch.testing.assert_close(parameter.grad, grad)
    use = device.graph_use()
    assert (use.graphs, use.backend_calls, use.executions) == (1, 1, 2)
    assert use.ops[0] > 4
    assert use.compile_s > 0
    assert use.breaks == ()
    assert use.recompiles == ()


def test_operators_of_a_graph_are_native_even_where_eager_falls_back(device: NeuronDevice) -> None:
    x = torch.randn(4, device=N)
    recording = device.recording()
    recording.start()
    compiled(lambda a: torch.maximum(a, a * 2))(x)
    torch.maximum(x, x)
    recording.stop()
    uses = {(use.op, use.mechanism): use.count for use in recording.ops()}
    assert uses["aten::maximum", 0] == 1
    assert uses["aten::maximum", 1] == 1


def test_dropout_and_autocast_compile_as_one_graph() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).to(N)

    def forward(x: Tensor) -> Tensor:
        with torch.autocast(N, dtype=torch.bfloat16):
            result: Tensor = model(x)
            return result

    y = compiled(forward, fullgraph=True)(torch.randn(3, 4, device=N))
    y.float().sum().backward()
    assert y.dtype == torch.bfloat16


def test_a_data_dependent_branch_is_one_break_with_its_number_reason_and_line(device: NeuronDevice) -> None:
    def branch(x: Tensor) -> Tensor:
        x = x + 1
        if (x == 2).any():
            x = x * 2
        return x

    compiled(branch)(torch.ones(3, device=N))
    (found,) = device.graph_use().breaks
    assert found.registry_id == "GB0170"
    assert "Data-dependent branching" in found.reason
    assert found.frame.startswith("test_device_compile.py:")
    assert device.graph_use().graphs == 2


def test_an_explicit_break_is_counted(device: NeuronDevice) -> None:
    def broken(x: Tensor) -> Tensor:
        x = x + 1
        torch._dynamo.graph_break()
        return x * 2

    compiled(broken)(torch.ones(3, device=N))
    (found,) = device.graph_use().breaks
    assert "graph_break()" in found.reason
    assert found.registry_id.startswith("GB")


def test_a_frame_given_up_before_its_first_operator_is_a_break(device: NeuronDevice) -> None:
    def looping(x: Tensor) -> Tensor:
        for _ in range(3):
            torch._dynamo.graph_break()
            x = x + 1
        return x

    compiled(looping)(torch.ones(3, device=N))
    (found,) = device.graph_use().breaks
    assert found.registry_id == "GB0025"
    assert device.graph_use().graphs == 0


def test_a_new_shape_recompiles_with_the_guard_that_failed(device: NeuronDevice) -> None:
    double = compiled(lambda x: x * 2)
    for size in (2, 3, 4):
        double(torch.ones(size, device=N))
    use = device.graph_use()
    assert use.graphs == 3
    assert len(use.recompiles) == 2
    assert "size mismatch" in use.recompiles[0]


def test_dynamic_shapes_are_refused_with_the_documented_text(device: NeuronDevice) -> None:
    with pytest.raises(BackendCompilerFailed, match="Dynamic shapes detected in the model") as caught:
        compiled(lambda x: x * 2, dynamic=True)(torch.ones(3, device=N))
    assert device.error_code(caught.value) == "NCC_EMOD025"


def integer_product(x: Tensor) -> Tensor:
    product: Tensor = x.int() @ x.int().t()
    return product


def dilated_pool(x: Tensor) -> Tensor:
    pooled: Tensor = nn.functional.max_pool2d(x[None, None], 2, dilation=2)
    return pooled


def masked_assignment(x: Tensor) -> Tensor:
    x = x.clone()
    x[x > 0] = torch.zeros((), device=x.device)
    return x


def triangular(x: Tensor) -> Tensor:
    solved: Tensor = torch.linalg.solve_triangular(x, x, upper=True)
    return solved


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (integer_product, "NCC_EVRF035"),
        (lambda x: x.int().topk(1).values, "NCC_EVRF013"),
        (dilated_pool, "NCC_EVRF018"),
        (triangular, "NCC_EVRF001"),
        (lambda x: x.to(torch.float8_e4m3fn).float(), "NCC_EVRF051"),
        (lambda x: torch.zeros(3, dtype=torch.long, device=N).scatter_add(0, x[0].long(), x[1].long()), "NCC_EVRF060"),
    ],
    ids=["integer-dot", "integer-topk", "window-dilation", "triangular-solve", "float8", "integer-scatter"],
)
def test_what_the_compiler_refuses_carries_its_code(device: NeuronDevice, function: Any, code: str) -> None:
    with pytest.raises(BackendCompilerFailed) as caught:
        compiled(function)(torch.ones(4, 4, device=N))
    assert device.error_code(caught.value) == code
    refused = caught.value.inner_exception
    assert isinstance(refused, NeuronCompileError)
    assert refused.cause.startswith("aten::")
    assert device.graph_use().backend_calls == 1
    assert device.graph_use().executions == 0


def test_a_boolean_index_put_is_refused() -> None:
    with pytest.raises(BackendCompilerFailed, match="Boolean index_put is not supported"):
        compiled(masked_assignment)(torch.ones(4, device=N))


@pytest.mark.device(profile="trn2-beta-2026-04")
def test_the_beta_runs_a_refused_graph_on_the_cpu_and_says_nothing(device: NeuronDevice) -> None:
    recording = device.recording()
    recording.start()
    result = compiled(triangular)(torch.eye(3, device=N))
    recording.stop()
    torch.testing.assert_close(result.cpu(), torch.eye(3))
    assert {(use.mechanism, use.reported) for use in recording.ops() if "triangular" in use.op} == {(5, False)}


def test_a_swallowed_compiler_error_leaves_no_execution(device: NeuronDevice) -> None:
    with torch._dynamo.config.patch(suppress_errors=True):
        compiled(dilated_pool)(torch.ones(4, 4, device=N))
    use = device.graph_use()
    assert (use.backend_calls, use.executions) == (1, 0)


def test_other_modes_warn_and_unknown_options_are_an_error(caplog: pytest.LogCaptureFixture) -> None:
    compiled(lambda x: x + 1, mode="max-autotune")(torch.ones(2, device=N))
    assert "Neuron backend does not support mode='max-autotune'" in caplog.text
    with pytest.raises(BackendCompilerFailed, match="has no option 'speed'"):
        compiled(lambda x: x + 2, options={"speed": 3})(torch.ones(2, device=N))


def test_dynamo_metrics_have_one_record_a_graph_under_the_real_names() -> None:
    compiled(lambda x: x + 1, options={"model_name": "adder"})(torch.ones(2, device=N))
    (record,) = torch.get_device_module(N).get_dynamo_metrics()
    assert record["model_name"] == "adder"
    assert record["graph_node_count"] == 1
    torch.get_device_module(N).reset_dynamo_metrics()
    assert torch.get_device_module(N).get_dynamo_metrics() == []


def test_other_backends_take_tensors_on_the_device() -> None:
    x = torch.randn(3, 4, device=N)
    model = small()
    torch.testing.assert_close(torch.compile(model, backend="aot_eager")(x), model(x))


def test_a_module_on_the_device_can_be_exported() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).to(N)
    program = torch.export.export(model, (torch.randn(2, 4, device=N),))
    program.run_decompositions()
    x = torch.ones(2, 4, device=N)
    torch.testing.assert_close(program.module()(x), model(x))


def test_empty_tensors_are_refused_where_they_are_computed_with_and_not_where_they_fold_away() -> None:
    x = torch.ones(2, 3, device=N)

    def cached(x: Tensor) -> Tensor:
        return torch.cat([torch.tensor([], device=x.device), x.flatten()])

    torch.testing.assert_close(compiled(cached, fullgraph=True)(x).cpu(), torch.ones(6))
    with pytest.raises(BackendCompilerFailed, match="empty tensors are not implemented"):
        compiled(lambda y: y[:0].sum(), fullgraph=True)(x)


def test_complex_operators_become_real_ones() -> None:
    def rotate(x: Tensor, angles: Tensor) -> Tensor:
        turns = torch.polar(torch.ones_like(angles), angles)
        pairs = torch.view_as_complex(x.view(*x.shape[:-1], -1, 2))
        turned = pairs * turns.unsqueeze(0)
        return torch.view_as_real(turned * 2.0 + turned.conj()).flatten(-2)

    x, angles = torch.randn(2, 3, 8, requires_grad=True), torch.randn(3, 4)
    expected = rotate(x, angles)
    (grad,) = torch.autograd.grad(expected.square().sum(), x)
    y = x.detach().to(N).requires_grad_()
    result = compiled(rotate, fullgraph=True)(y, angles.to(N))
    torch.testing.assert_close(result.cpu(), expected)
    torch.testing.assert_close(torch.autograd.grad(result.square().sum(), y)[0].cpu(), grad)


def test_the_complex_pass_leaves_no_complex_tensor_and_refuses_nothing_it_does_not_know() -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    from neuronqa.device.neuron.compiler.complex import decompose

    def rotate(x: Tensor) -> Tensor:
        return torch.view_as_real(torch.view_as_complex(x) * torch.view_as_complex(x)).sum()

    traced = make_fx(rotate, tracing_mode="fake")(torch.randn(3, 2))
    assert decompose(traced.graph) == 4
    traced.recompile()
    assert not any(node.meta["val"].is_complex() for node in traced.graph.nodes if "val" in node.meta)
    x = torch.randn(3, 2)
    torch.testing.assert_close(traced(x), rotate(x))
    whole = make_fx(lambda x: torch.fft.fft(x * 2).abs(), tracing_mode="fake")(torch.randn(4, dtype=torch.complex64))
    decompose(whole.graph)
    whole.recompile()
    z = torch.randn(4, dtype=torch.complex64)
    torch.testing.assert_close(whole(z), torch.fft.fft(z * 2).abs())


def test_a_graph_that_needs_more_memory_than_the_device_has_is_refused() -> None:
    with pytest.raises(BackendCompilerFailed, match="NCC_EOOM001"):
        compiled(lambda x: (x + 1).sum())(torch.empty(1, device=N).expand(7 * 2**30))
