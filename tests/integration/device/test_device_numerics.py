"""The device's own arithmetic: tiles, tables, rounding and quirks; and none of them on the profile `ideal`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from neuronqa.device.neuron.surface import DEVICE as N

pytestmark = pytest.mark.device(profile="trn2-sdk2.33")

ULP = 2.0**-24
Function = Callable[[Tensor], Tensor]


def gradient(function: Function, x: Tensor) -> Tensor:
    x = x.detach().requires_grad_()
    return torch.autograd.grad(function(x).sum(), x)[0].cpu()


def far(actual: Tensor, expected: Tensor) -> float:
    """The largest distance in roundings of float32, relative to the largest value."""
    return float((actual.double() - expected.double()).abs().max() / expected.abs().max() / ULP)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_products_are_sums_over_tiles_of_128_rounded_once(dtype: torch.dtype) -> None:
    a, b, bias = torch.randn(8, 300).to(dtype), torch.randn(300, 4).to(dtype), torch.randn(4).to(dtype)
    total = torch.zeros(8, 4)
    for start in range(0, 300, 128):
        total.addmm_(a[:, start : start + 128].float(), b[start : start + 128].float())
    assert torch.equal((a.to(N) @ b.to(N)).cpu(), total.to(dtype))
    assert torch.equal(torch.addmm(bias.to(N), a.to(N), b.to(N)).cpu(), (total + bias.float()).to(dtype))
    torch.testing.assert_close((a.to(N)[None] @ b.to(N)[None])[0].cpu(), total.to(dtype), rtol=0, atol=0)
    assert torch.equal(a.to(N).mv(b[:, 0].to(N)).cpu(), (a.to(N) @ b[:, :1].to(N))[:, 0].cpu())


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_convolutions_sum_channels_in_tiles(groups: int, dtype: torch.dtype) -> None:
    x, weight = torch.randn(1, 200 * groups, 3, 3).to(dtype), torch.randn(2 * groups, 200, 3, 3).to(dtype)
    actual = F.conv2d(x.to(N), weight.to(N), padding=1, groups=groups).cpu()
    exact = F.conv2d(x.double(), weight.double(), padding=1, groups=groups)
    assert far(actual, exact) < (32 if dtype is torch.float32 else 2**17)
    plain = F.conv2d(x.float(), weight.float(), padding=1, groups=groups).to(dtype)
    assert dtype is torch.bfloat16 or not torch.equal(actual, plain)
    grad = gradient(lambda y: F.conv2d(y, weight.to(y.device), padding=1, groups=groups).float().square(), x.to(N))
    wide = gradient(lambda y: F.conv2d(y, weight.double(), padding=1, groups=groups).square(), x.double())
    assert far(grad, wide) < (32 if dtype is torch.float32 else 2**18)


@pytest.mark.parametrize(
    ("function", "low", "high"),
    [
        (torch.exp, -80, 80),
        (torch.log, 1e-15, 1e15),
        (torch.sqrt, 0, 1e10),
        (torch.rsqrt, 1e-6, 10),
        (torch.reciprocal, 0.01, 10),
        (torch.tanh, -10, 10),
        (torch.erf, -5, 5),
        (torch.sin, -300, 300),
        (torch.cos, -300, 300),
        (torch.sigmoid, -20, 20),
        (F.silu, -20, 20),
        (F.gelu, -9, 9),
        (lambda x: F.gelu(x, approximate="tanh"), -9, 9),
        (F.softplus, -30, 30),
        (lambda x: F.softmax(x.view(-1, 5), 1), -9, 9),
        (lambda x: F.log_softmax(x.view(-1, 5), 1), -9, 9),
        (lambda x: F.layer_norm(x.view(-1, 5), (5,)), -9, 9),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_functions_come_from_tables_that_keep_to_a_few_roundings(function: Function, low: float, high: float) -> None:
    x = torch.empty(5000).uniform_(low, high)
    actual, exact = function(x.to(N)).cpu(), function(x.double())
    assert far(actual, exact) < 6
    assert not torch.equal(actual, function(x)), "the host's own function ran"
    y = torch.randn(5000).clamp(-8, 8) if low < 0 else torch.rand(5000) + 0.5
    weights = torch.randn(5000)
    grads = [gradient(lambda t: function(t).flatten() * weights.to(t), start) for start in (y.to(N), y.double())]
    assert far(*grads) < 64


def test_functions_of_nothing_and_everything() -> None:
    odd = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -1.0])
    for function in (torch.exp, torch.log, torch.sqrt, torch.tanh, torch.erf, torch.sigmoid, F.silu, torch.cos):
        torch.testing.assert_close(function(odd.to(N)).cpu(), function(odd), equal_nan=True)


def test_beyond_a_documented_range_the_end_of_the_range_counts() -> None:
    tiny, huge = torch.tensor([1e-35], device=N), torch.tensor([1e35], device=N)
    assert tiny.log().item() == pytest.approx(-44.3614, rel=1e-5)
    assert tiny.reciprocal().item() == 2.0**42
    assert huge.rsqrt().item() == pytest.approx(2.0**-48.5, rel=1e-5)


def test_variants_of_an_operator_share_its_numerics() -> None:
    x = torch.randn(4, 300, device=N)
    out = torch.empty(0, device=N)
    assert torch.equal(torch.exp(x, out=out), x.exp())
    assert torch.equal(x.clone().tanh_(), x.tanh())
    product = torch.empty(4, 4, device=N)
    assert torch.equal(torch.mm(x, x.T, out=product), x @ x.T)
    assert x.double().exp().dtype == torch.float64
    assert torch.exp(torch.tensor([1], device=N)).dtype == torch.float32
    assert torch.equal(x.T.exp(), x.exp().T)


def test_a_graph_computes_what_eager_execution_does() -> None:
    layer = torch.nn.Sequential(torch.nn.Linear(300, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Softmax(-1))
    layer.to(N)
    x = torch.randn(4, 300, device=N)
    assert torch.equal(torch.compile(layer, backend="neuron")(x), layer(x))


def test_quirks_are_those_that_are_documented() -> None:
    odd = torch.tensor([float("nan"), float("inf"), -float("inf"), 1.5], device=N)
    nan, inf, low = float("nan"), float("inf"), torch.finfo(torch.float32).min
    expected: dict[Callable[[], Tensor], list[float]] = {
        odd.relu: [0.0, inf, 0.0, 1.5],
        odd.clone().relu_: [0.0, inf, 0.0, 1.5],
        lambda: odd.clamp(-2, 3): [-2.0, 3.0, -2.0, 1.5],
        lambda: odd.clamp_max(3): [nan, 3.0, low, 1.5],
        odd.ceil: [-(2.0**31)] * 3 + [2.0],
        odd.trunc: [-(2.0**31)] * 3 + [1.0],
        odd.sign: [nan, 1.0, -1.0, 1.0],
        lambda: odd.index_select(0, torch.tensor([3, 9, -5], device=N)): [1.5, nan, nan],
    }
    for function, values in expected.items():
        torch.testing.assert_close(function().cpu(), torch.tensor(values), rtol=0, atol=0, equal_nan=True)


def accumulate(dtype: torch.dtype) -> float:
    """The SDK's own example: 1024 and 2048 times 0.5, which half precision rounds away one by one."""
    total = torch.full((1,), 1024.0, dtype=dtype, device=N)
    for _ in range(2048):
        total = total + 0.5
    return total.item()


def test_rounding_is_to_nearest_even_by_default() -> None:
    assert accumulate(torch.bfloat16) == 1024
    assert torch.tensor([1.0 + 2**-8], device=N).bfloat16().item() == 1


@pytest.mark.device(profile="trn2-sdk2.33", environment={"NEURON_RT_STOCHASTIC_ROUNDING_EN": "1"})
def test_stochastic_rounding_keeps_sums_right_on_average() -> None:
    for dtype in (torch.bfloat16, torch.float16):
        assert accumulate(dtype) == pytest.approx(2048, rel=0.15)
    wide = torch.full((10_000,), 1.0 + 2**-9, device=N)
    rounded = wide.bfloat16()
    assert rounded.float().mean().item() == pytest.approx(1.0 + 2**-9, abs=3e-4)
    assert set(rounded.float().tolist()) == {1.0, 1.0078125}
    x = torch.randn(64, dtype=torch.bfloat16, device=N).requires_grad_()
    x.mul(3).relu().sum().backward()
    assert x.grad is not None
    assert x.grad.dtype == torch.bfloat16
    torch.testing.assert_close(x.detach().clone().add_(1), x.detach() + 1, rtol=0.02, atol=0.02)


@pytest.mark.device(profile="ideal")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_ideal_profile_computes_as_the_cpu_does(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    layer = torch.nn.Sequential(torch.nn.Linear(300, 64), torch.nn.GELU(), torch.nn.LayerNorm(64), torch.nn.Softmax(-1))
    layer = layer.to(dtype)
    x = torch.randn(8, 300, dtype=dtype)
    expected = gradient(layer, x)
    assert torch.equal(gradient(layer.to(N), x.to(N)), expected)
    assert torch.tensor([float("nan")], device=N).relu().isnan().all()
    with pytest.raises(IndexError):
        torch.ones(2, device=N).index_select(0, torch.tensor([5], device=N))


@pytest.mark.device(profile="ideal")
def test_conjugate_operands_are_conjugated() -> None:
    x, y = torch.randn(3, 3, dtype=torch.complex64), torch.randn(3, 3, dtype=torch.complex64)
    torch.testing.assert_close((x.to(N).mH @ y.to(N)).cpu(), x.mH @ y)
    torch.testing.assert_close((x.to(N).imag @ y.to(N).real).cpu(), x.imag @ y.real)
