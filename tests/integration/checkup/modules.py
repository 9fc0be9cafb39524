"""Plain modules of many kinds, each made by a factory of its name; most are sound, the others say what stops them."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
import torch.nn.utils.parametrize as parametrize
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

GAIN = 8.0
Made = tuple[Any, ...]
FACTORIES: dict[str, Callable[[], Made]] = {}


def factory(function: Callable[[], Made]) -> Callable[[], Made]:
    FACTORIES[function.__name__] = function
    return function


def classes(output: Tensor) -> Tensor:
    """Each row should choose another class."""
    rows = output.flatten(1)
    return F.cross_entropy(GAIN * rows, torch.arange(len(rows), device=rows.device) % rows.shape[1])


def rows(count: int = 8, width: int = 16) -> Tensor:
    return torch.randn(count, width)


class Body(nn.Module):
    """Two linear layers with a step between that subclasses choose."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.first = nn.Linear(16, width)
        self.second = nn.Linear(width, 4)

    def between(self, h: Tensor) -> Any:
        return torch.tanh(h)

    def forward(self, x: Tensor) -> Any:
        return self.second(self.between(self.first(x)))


def body(between: Callable[..., Any]) -> Made:
    kind = type(between.__name__, (Body,), {"between": staticmethod(between)})
    return kind(), rows(), classes


# ---- layers ----------------------------------------------------------------------------------------------------------


@factory
def perceptron() -> Made:
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4)), rows(), classes


@factory
def residual() -> Made:
    class Residual(Body):
        def forward(self, x: Tensor) -> Any:
            return self.second(x + torch.relu(self.first(x)))

    return Residual(), rows(), classes


@factory
def convolution() -> Made:
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 4))
    return net, torch.randn(4, 3, 8, 8), classes


@factory
def convolution_of_a_line() -> Made:
    net = nn.Sequential(nn.Conv1d(4, 8, 5, stride=2), nn.SiLU(), nn.Flatten(), nn.Linear(48, 4))
    return net, torch.randn(4, 4, 16), classes


@factory
def convolution_of_a_volume() -> Made:
    net = nn.Sequential(nn.Conv3d(1, 4, 2), nn.Tanh(), nn.Flatten(), nn.Linear(108, 4))
    return net, torch.randn(4, 1, 4, 4, 4), classes


@factory
def depthwise_separable() -> Made:
    net = nn.Sequential(nn.Conv2d(4, 4, 3, groups=4), nn.Conv2d(4, 8, 1), nn.Tanh(), nn.Flatten(), nn.Linear(288, 4))
    return net, torch.randn(4, 4, 8, 8), classes


@factory
def dilated() -> Made:
    net = nn.Sequential(
        nn.Conv2d(2, 4, 3, dilation=2), nn.Tanh(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16, 4)
    )
    return net, torch.randn(4, 2, 8, 8), classes


@factory
def upsampling() -> Made:
    net = nn.Sequential(nn.ConvTranspose2d(2, 3, 3, stride=2), nn.Tanh(), nn.Flatten(), nn.Linear(243, 4))
    return net, torch.randn(4, 2, 4, 4), classes


@factory
def batch_norm() -> Made:
    net = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.Tanh(), nn.Linear(32, 4))
    return net, rows(), classes


@factory
def group_norm() -> Made:
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.Tanh(), nn.Flatten(), nn.Linear(288, 4))
    return net, torch.randn(4, 3, 8, 8), classes


@factory
def embedding() -> Made:
    net = nn.Sequential(nn.Embedding(32, 16), nn.Flatten(), nn.Linear(64, 4))
    return net, torch.arange(32).reshape(8, 4), classes


@factory
def bag_of_embeddings() -> Made:
    class Bag(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.randn(32, 4))

        def forward(self, ids: Tensor) -> Tensor:
            return self.table[ids].mean(1)

    return Bag(), torch.arange(32).reshape(8, 4), classes


@factory
def dropout() -> Made:
    return nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Dropout(0.5), nn.Linear(32, 4)), rows(), classes


@factory
def bilinear() -> Made:
    return nn.Bilinear(16, 8, 4), (rows(), rows(8, 8)), classes


# ---- sequences -------------------------------------------------------------------------------------------------------


class Recurrent(nn.Module):
    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.cell = kind(8, 16, batch_first=True)
        self.head = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Any:
        return self.head(self.cell(x)[0][:, -1])


@factory
def elman() -> Made:
    return Recurrent(nn.RNN), torch.randn(4, 5, 8), classes


@factory
def lstm() -> Made:
    return Recurrent(nn.LSTM), torch.randn(4, 5, 8), classes


@factory
def gru() -> Made:
    return Recurrent(nn.GRU), torch.randn(4, 5, 8), classes


@factory
def unrolled_cell() -> Made:
    class Unrolled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.GRUCell(8, 16)
            self.head = nn.Linear(16, 4)

        def forward(self, x: Tensor) -> Any:
            state = x.new_zeros(x.shape[0], 16)
            for step in range(x.shape[1]):
                state = self.cell(x[:, step], state)
            return self.head(state)

    return Unrolled(), torch.randn(4, 4, 8), classes


@factory
def scan() -> Made:
    class Scan(nn.Module):
        """A linear recurrence as a cumulative sum, as state space models have it."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(8, 8)
            self.decay = nn.Parameter(torch.zeros(8))
            self.head = nn.Linear(8, 4)

        def forward(self, x: Tensor) -> Any:
            weight = torch.exp(-F.softplus(self.decay) * torch.arange(x.shape[1], device=x.device)[:, None])
            return self.head((weight * self.inner(x)).cumsum(1)[:, -1])

    return Scan(), torch.randn(4, 6, 8), classes


@factory
def attention() -> Made:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mix = nn.MultiheadAttention(16, 2, batch_first=True)
            self.head = nn.Linear(16, 4)

        def forward(self, x: Tensor) -> Any:
            return self.head(self.mix(x, x, x, need_weights=False)[0][:, 0])

    return Attention(), torch.randn(4, 5, 16), classes


@factory
def scaled_dot_product() -> Made:
    class Heads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(16, 48)
            self.head = nn.Linear(16, 4)

        def forward(self, x: Tensor) -> Any:
            q, k, v = (t.unflatten(-1, (2, 8)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.head(mixed.transpose(1, 2).flatten(2)[:, -1])

    return Heads(), torch.randn(4, 5, 16), classes


@factory
def encoder_layer() -> Made:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    return nn.Sequential(layer, nn.Flatten(), nn.Linear(64, 4)), torch.randn(4, 4, 16), classes


@factory
def relative_positions() -> Made:
    class Relative(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(9, 1)
            self.value = nn.Linear(16, 4)

        def forward(self, x: Tensor) -> Any:
            place = torch.arange(x.shape[1], device=x.device)
            bias = self.table(place[:, None] - place[None] + 4).squeeze(-1)
            return (bias.softmax(-1) @ self.value(x))[:, 0]

    return Relative(), torch.randn(4, 5, 16), classes


# ---- graphs, experts, geometry ---------------------------------------------------------------------------------------


@factory
def gather_and_scatter() -> Made:
    class Message(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.message = nn.Linear(8, 8)
            self.head = nn.Linear(8, 4)

        def forward(self, nodes: Tensor, edges: Tensor) -> Any:
            sent = torch.tanh(self.message(nodes))[edges[0]]
            received = torch.zeros_like(nodes).index_add(0, edges[1], sent)
            return self.head(nodes + received)

    edges = torch.stack([torch.arange(12) % 6, (torch.arange(12) * 5 + 1) % 6])
    return Message(), {"nodes": torch.randn(6, 8), "edges": edges}, classes


@factory
def scatter_reduce() -> Made:
    class Pool(Body):
        def between(self, h: Tensor) -> Any:
            index = (torch.arange(8, device=h.device) // 2)[:, None].expand_as(h)
            pooled = h.new_zeros(4, h.shape[1]).scatter_reduce(0, index, h, "sum")
            return torch.tanh(pooled)

    return Pool(), rows(), classes


@factory
def normalised_adjacency() -> Made:
    class Convolve(Body):
        def forward(self, x: Tensor, adjacency: Tensor) -> Any:  # type: ignore[override]
            degree = adjacency.sum(-1, keepdim=True).clamp(min=1)
            return self.second(torch.relu(adjacency / degree @ self.first(x)))

    return Convolve(), {"x": rows(), "adjacency": (torch.rand(8, 8) > 0.5).float()}, classes


@factory
def mixture_of_experts() -> Made:
    class Mixture(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.router = nn.Linear(16, 3)
            self.experts = nn.ModuleList(nn.Linear(16, 4) for _ in range(3))

        def forward(self, x: Tensor) -> Any:
            weight = self.router(x).softmax(-1)
            return torch.stack([expert(x) for expert in self.experts], -1).mul(weight[:, None]).sum(-1)

    return Mixture(), rows(), classes


@factory
def einsum() -> Made:
    class Contract(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.core = nn.Parameter(torch.randn(16, 4, 3) / 4)

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return torch.einsum("bi,ijk,bk->bj", x, self.core, y)

    return Contract(), (rows(), rows(8, 3)), classes


@factory
def pairwise_distance() -> Made:
    class Prototypes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.centres = nn.Parameter(torch.randn(4, 16))

        def forward(self, x: Tensor) -> Tensor:
            return -(x[:, None] - self.centres).square().mean(-1)

    return Prototypes(), rows(), classes


@factory
def pixel_shuffle() -> Made:
    net = nn.Sequential(nn.Conv2d(2, 8, 1), nn.PixelShuffle(2), nn.Flatten(), nn.Linear(128, 4))
    return net, torch.randn(4, 2, 4, 4), classes


@factory
def interpolation() -> Made:
    class Resize(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Conv2d(2, 2, 1)
            self.head = nn.Linear(72, 4)

        def forward(self, x: Tensor) -> Any:
            return self.head(F.interpolate(self.layer(x), size=6, mode="nearest").flatten(1))

    return Resize(), torch.randn(4, 2, 3, 3), classes


# ---- autograd of one's own -------------------------------------------------------------------------------------------


class Squash(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x / (1 + x.abs())
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return grad / (1 + x.abs()).square()


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return grad * (x.abs() < 2)


@factory
def custom_function() -> Made:
    def between(h: Tensor) -> Any:
        return Squash.apply(h)  # type: ignore[no-untyped-call]

    return body(between)


@factory
def straight_through() -> Made:
    def between(h: Tensor) -> Any:
        return Straight.apply(h)  # type: ignore[no-untyped-call]

    return body(between)


@factory
def checkpointed() -> Made:
    class Again(Body):
        def forward(self, x: Tensor) -> Any:
            return self.second(checkpoint(lambda h: torch.tanh(self.first(h)), x, use_reentrant=False))

    return Again(), rows(), classes


@factory
def gradient_penalty() -> Made:
    class Smooth(Body):
        def forward(self, x: Tensor) -> Any:
            return self.second(torch.sin(self.first(x)))

    def loss(output: Tensor, inputs: dict[str, Any]) -> Any:
        return classes(output) + 0.1 * inputs["x"].square().mean()

    return Smooth(), rows(), loss


# ---- tricks ----------------------------------------------------------------------------------------------------------


@factory
def in_place() -> Made:
    def between(h: Tensor) -> Any:
        h = h * 1.0
        h.mul_(0.5).add_(1.0)
        h[:, ::2] = h[:, ::2].tanh()
        return h

    return body(between)


@factory
def in_place_on_a_view() -> Made:
    def between(h: Tensor) -> Any:
        out = torch.zeros_like(h)
        out.t()[3:].copy_(h.t()[3:])
        return out

    return body(between)


@factory
def masked_fill() -> Made:
    def between(h: Tensor) -> Any:
        return h.masked_fill(torch.ones_like(h, dtype=torch.bool).triu(1), -1.0).tanh()

    return body(between)


@factory
def where_instead_of_if() -> Made:
    def between(h: Tensor) -> Any:
        return torch.where(h.mean() > 0, h, -h).tanh()

    return body(between)


@factory
def strided_and_flipped() -> Made:
    def between(h: Tensor) -> Any:
        return torch.cat([h.flip(-1)[:, ::2], h.roll(1, -1)[:, 1::2]], -1).tanh()

    return body(between)


@factory
def hooks() -> Made:
    net = Body()
    net.first.register_forward_hook(lambda _module, _given, output: output.clamp(-3, 3))
    net.second.register_forward_pre_hook(lambda _module, given: (given[0] * 2,))
    net.second.weight.register_hook(lambda gradient: gradient * 0.5)
    return net, rows(), classes


@factory
def weight_norm() -> Made:
    return (
        nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(16, 32)), nn.Tanh(), nn.Linear(32, 4)),
        rows(),
        classes,
    )


@factory
def parametrised() -> Made:
    class Symmetric(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.triu() + x.triu(1).transpose(-1, -2)

    layer = nn.Linear(16, 16)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    return nn.Sequential(layer, nn.Tanh(), nn.Linear(16, 4)), rows(), classes


@factory
def tied() -> Made:
    net = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 16), nn.Linear(16, 4))
    net[2].weight = net[0].weight
    return net, rows(), classes


@factory
def buffer_that_counts() -> Made:
    class Counting(Body):
        seen: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(()))

        def between(self, h: Tensor) -> Any:
            self.seen.add_(1)
            return torch.tanh(h)

    return Counting(), rows(), classes


@factory
def list_of_modules() -> Made:
    class Stack(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleDict({"a": nn.Linear(16, 16), "b": nn.Linear(16, 16)})
            self.scales = nn.ParameterList([torch.ones(16), torch.ones(16)])
            self.head = nn.Linear(16, 4)

        def forward(self, x: Tensor) -> Any:
            for layer, scale in zip(self.layers.values(), self.scales, strict=True):
                x = x + scale * torch.tanh(layer(x))
            return self.head(x)

    return Stack(), rows(), classes


# ---- inputs and outputs ----------------------------------------------------------------------------------------------


@factory
def outputs_of_many_kinds() -> Made:
    class Many(Body):
        def forward(self, x: Tensor) -> Any:
            logits = super().forward(x)
            return {"logits": logits, "shape": list(x.shape), "name": "many", "none": None, "pair": (logits.sum(), 3)}

    return Many(), rows(), lambda out: classes(out["logits"])


@factory
def named_tuple_output() -> Made:
    class Out(NamedTuple):
        logits: Tensor
        size: int

    class Named(Body):
        def forward(self, x: Tensor) -> Any:
            return Out(super().forward(x), 4)

    return Named(), rows(), lambda out: classes(out.logits)


@factory
def dataclass_output() -> Made:
    @dataclasses.dataclass
    class Out:
        logits: Tensor

    class Held(Body):
        def forward(self, x: Tensor) -> Any:
            return Out(super().forward(x))

    return Held(), rows(), lambda out: classes(out.logits)


@factory
def one_dict_argument() -> Made:
    class Batch(Body):
        def forward(self, batch: dict[str, Tensor]) -> Any:  # type: ignore[override]
            return super().forward(batch["x"] * batch["scale"])

    return Batch(), {"x": rows(), "scale": torch.full((8, 1), 2.0)}, classes


@factory
def optional_arguments() -> Made:
    class Optional(Body):
        def forward(self, x: Tensor, mask: Tensor | None = None, *, scale: float = 1.0) -> Any:
            h = x if mask is None else x * mask
            return super().forward(h * scale)

    return Optional(), {"x": rows(), "scale": 2.0}, classes


@factory
def loss_over_inputs() -> Made:
    def loss(output: Tensor, inputs: dict[str, Any]) -> Tensor:
        return F.cross_entropy(GAIN * output, inputs["label"])

    class Labelled(Body):
        def forward(self, x: Tensor, label: Tensor) -> Any:  # type: ignore[override]
            del label
            return super().forward(x)

    return Labelled(), {"x": rows(), "label": torch.arange(8) % 4}, loss


@factory
def no_loss() -> Made:
    return Body(), rows()


@factory
def momentum() -> Made:
    net = Body()
    return net, rows(), classes, torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)


@factory
def optimizer_by_function() -> Made:
    return Body(), rows(), classes, lambda parameters: torch.optim.Adam(parameters, lr=1e-3)


@factory
def autoencoder() -> Made:
    net = nn.Sequential(nn.Linear(16, 4), nn.Tanh(), nn.Linear(4, 16))
    return net, {"input": rows()}, lambda out, inputs: GAIN * F.mse_loss(out, inputs["input"])


@factory
def mixed_numbers() -> Made:
    def between(h: Tensor) -> Any:
        return torch.polar(h.abs() + 1, h).real.tanh()

    return body(between)


# ---- what dynamo cannot take -----------------------------------------------------------------------------------------


@factory
def branch_on_data() -> Made:
    def between(h: Tensor) -> Any:
        return torch.tanh(h) if h.sum() > 0 else torch.sin(h)

    return body(between)


@factory
def loop_on_data() -> Made:
    def between(h: Tensor) -> Any:
        steps = int(h.abs().mean().item() * 0) + 2
        for _ in range(steps):
            h = torch.tanh(h)
        return h

    return body(between)


@factory
def shape_from_data() -> Made:
    def between(h: Tensor) -> Any:
        return torch.tanh(h) + h[h > 0].mean()

    return body(between)


@factory
def prints() -> Made:
    def between(h: Tensor) -> Any:
        print("seen", tuple(h.shape))
        return torch.tanh(h)

    return body(between)


@factory
def swallows_errors() -> Made:
    def between(h: Tensor) -> Any:
        with contextlib.suppress(RuntimeError):
            h = h.reshape(7, -1)
        return torch.tanh(h)

    return body(between)


# ---- what only the CPU can do ----------------------------------------------------------------------------------------


@factory
def through_numpy() -> Made:
    def between(h: Tensor) -> Any:
        mean = h.detach().numpy().mean()
        return torch.tanh(h) * float(mean * 0 + 1)

    return body(between)


@factory
def constant_on_the_cpu() -> Made:
    mask = torch.ones(16)

    def between(h: Tensor) -> Any:
        return torch.tanh(h * mask)

    return body(between)


@factory
def pointer_to_memory() -> Made:
    def between(h: Tensor) -> Any:
        if h.device.type != "cpu":
            raise RuntimeError("only for the CPU")
        return torch.tanh(h)

    return body(between)
