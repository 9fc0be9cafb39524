"""Faults that are kernels of their own: mistakes that real compilers and devices made, and good twins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from neuronqa.device.neuron.faults import Fault
from neuronqa.device.neuron.planted.effects import Call, Run, effect, flat, floats

TILE = 128


@dataclass(frozen=True)
class Product:
    """`beta * bias + alpha * left @ right`, in whatever operator it came as."""

    left: Tensor
    right: Tensor
    bias: Tensor | None
    beta: float
    alpha: float

    def result(self, product: Tensor) -> Tensor:
        scaled = product * self.alpha if self.alpha != 1 else product
        if self.bias is None:
            return scaled.to(self.left.dtype)
        return (self.bias.to(product.dtype) * self.beta + scaled).to(self.left.dtype)


def product_of(call: Call) -> Product:
    """Raises ValueError for an operator that is no matrix product."""
    base = call.name.removeprefix("aten::").partition(".")[0]
    args = call.args
    if base in ("mm", "bmm"):
        return Product(args[0], args[1], None, 1.0, 1.0)
    if base in ("addmm", "baddbmm"):
        return Product(args[1], args[2], args[0], float(args[3]), float(args[4]))
    raise ValueError(f"{call.name} is no matrix product")


def _matrix_effect(name: str) -> Callable[[Callable[[Tensor, Tensor], Tensor]], Callable[[Tensor, Tensor], Tensor]]:
    """Register a way to multiply two float32 matrices as a fault of every matrix product."""

    def register(multiply: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
        def apply(call: Call, _run: Run, _fault: Fault) -> Any:
            product = product_of(call)
            return product.result(multiply(product.left.float(), product.right.float()))

        effect(name)(apply)
        return multiply

    return register


@_matrix_effect("bf16-accumulation")
def bf16_accumulation(left: Tensor, right: Tensor) -> Tensor:
    total = torch.zeros(())
    for start in range(0, left.shape[-1], 4):
        part = left[..., start : start + 4] @ right[..., start : start + 4, :]
        total = (total + part).bfloat16().float()
    return total


@_matrix_effect("bf16-operands")
def bf16_operands(left: Tensor, right: Tensor) -> Tensor:
    return left.bfloat16().float() @ right.bfloat16().float()


@_matrix_effect("dropped-contraction")
def dropped_contraction(left: Tensor, right: Tensor) -> Tensor:
    kept = left.shape[-1] - max(left.shape[-1] // 8, 1)
    return left[..., :kept] @ right[..., :kept, :]


@_matrix_effect("inverted-accumulate")
def inverted_accumulate(left: Tensor, right: Tensor) -> Tensor:
    half = left.shape[-1] // 2
    return left[..., half:] @ right[..., half:, :]


@_matrix_effect("twin-reordered")
def twin_reordered(left: Tensor, right: Tensor) -> Tensor:
    return left.flip(-1) @ right.flip(-2)


@_matrix_effect("twin-tiled")
def twin_tiled(left: Tensor, right: Tensor) -> Tensor:
    starts = range(0, left.shape[-1], TILE)
    return torch.stack([left[..., k : k + TILE] @ right[..., k : k + TILE, :] for k in starts]).sum(0)


@effect("twin-identity")
def twin_identity(_call: Call, run: Run, _fault: Fault) -> Any:
    return run()


@effect("dropped-bias-tile")
def dropped_bias_tile(call: Call, run: Run, _fault: Fault) -> Any:
    result: Tensor = run()
    if call.name.startswith("aten::convolution"):
        bias, axis = call.args[2], 1
        whole = None if bias is None else bias.view(-1, *[1] * (result.dim() - 2)).expand_as(result)
    else:
        axis = -1
        whole = call.args[0].expand_as(result) * float(call.args[3])
    if whole is not None:
        size = result.shape[axis]
        tile = slice(size // 4, size // 4 + max(size // 4, 1))
        result.movedim(axis, 0)[tile] -= whole.movedim(axis, 0)[tile]
    return result


@effect("unbiased-variance")
def unbiased_variance(call: Call, run: Run, _fault: Fault) -> Any:
    result, mean, rstd = run()
    x, shape, weight, bias, _ = call.args
    size = 1
    for length in shape:
        size *= length
    factor = ((size - 1) / size) ** 0.5
    normal = (x - mean) * rstd * factor
    scaled = normal if weight is None else normal * weight
    result.copy_(scaled if bias is None else scaled + bias)
    return result, mean, rstd * factor


@effect("missing-epsilon")
def missing_epsilon(call: Call, run: Run, fault: Fault) -> Any:
    del call
    result = run()
    for tensor in floats(result)[:1]:
        tensor.mul_((1 - fault.number("share")) ** -0.5)
    return result


@effect("tanh-gelu")
def tanh_gelu(call: Call, _run: Run, _fault: Fault) -> Any:
    x, approximate = call.args
    return F.gelu(x, approximate="none" if approximate == "tanh" else "tanh")


@effect("table-activation")
def table_activation(call: Call, run: Run, fault: Fault) -> Any:
    """Looks its argument up instead of taking it as it is; in-place variants find it already overwritten."""
    step = fault.number("step")
    before = call.args[0].clone()
    result: Tensor = run()
    base = call.name.removeprefix("aten::").partition(".")[0].rstrip("_")
    function: Callable[[Tensor], Tensor] = getattr(F, base) if base in ("gelu", "silu") else getattr(torch, base)
    return result.copy_(function((before / step).round() * step))


@effect("softmax-temperature")
def softmax_temperature(call: Call, _run: Run, fault: Fault) -> Any:
    return torch.softmax(call.args[0] * fault.number("factor"), call.args[1])


@effect("unnormalised-softmax")
def unnormalised_softmax(call: Call, run: Run, fault: Fault) -> Any:
    del call
    result: Tensor = run()
    return result.mul_(fault.number("factor"))


@effect("dropped-mask")
def dropped_mask(call: Call, run: Run, _fault: Fault) -> Any:
    """What a mask would have made very negative stays as it was."""
    before = call.args[0].clone()
    result: Tensor = run()
    if not result.is_floating_point():
        return result
    candidates = call.args[1:3] if call.name == "aten::where.self" else (before,)
    best = torch.maximum(*candidates) if len(candidates) == 2 else candidates[0]
    return result.copy_(torch.where(result < -1e4, best.to(result.dtype), result))


@effect("off-by-one-index")
def off_by_one_index(call: Call, run: Run, _fault: Fault) -> Any:
    result: Tensor = run()
    if call.name == "aten::embedding":
        weight, index = call.args[:2]
        return result.copy_(F.embedding((index + 1) % weight.shape[0], weight))
    x, dim, index = call.args[:3]
    moved = (index + 1) % x.shape[dim]
    again = torch.gather(x, dim, moved) if "gather" in call.name else torch.index_select(x, dim, moved)
    return result.copy_(again)


@effect("short-sum")
def short_sum(call: Call, run: Run, _fault: Fault) -> Any:
    before = call.args[0].clone()
    result: Tensor = run()
    flat(before)[..., -1] = 0
    return _reduce_again(call, before, result)


@effect("bf16-sum")
def bf16_sum(call: Call, run: Run, _fault: Fault) -> Any:
    result: Tensor = run()
    return _reduce_again(call, call.args[0].bfloat16(), result)


def _reduce_again(call: Call, x: Tensor, result: Tensor) -> Tensor:
    if not result.is_floating_point():
        return result
    function = torch.mean if "mean" in call.name else torch.sum
    dims = call.args[1] if len(call.args) > 2 and isinstance(call.args[1], list) else None
    keep = bool(call.args[2]) if dims is not None else False
    again = function(x, dims, keep) if dims else function(x)
    return result.copy_(again.view_as(result))


@effect("restarted-cumsum")
def restarted_cumsum(call: Call, run: Run, _fault: Fault) -> Any:
    x, dim = call.args[0].clone(), call.args[1]
    result: Tensor = run()
    half = result.shape[dim] // 2
    if result.dim() and half:
        tail = result.narrow(dim, half, result.shape[dim] - half)
        tail.copy_(x.narrow(dim, half, x.shape[dim] - half).cumsum(dim))
    return result


@effect("lost-duplicates")
def lost_duplicates(call: Call, run: Run, _fault: Fault) -> Any:
    result: Tensor = run()
    grad, index = call.args[:2]
    result.zero_()
    result[index.flatten()] = grad.reshape(-1, grad.shape[-1])
    return result


@effect("convolution-edge")
def convolution_edge(call: Call, run: Run, _fault: Fault) -> Any:
    del call
    result: Tensor = run()
    result[..., 0] = 0
    return result


@effect("frozen-statistics")
def frozen_statistics(call: Call, run: Run, _fault: Fault) -> Any:
    statistics = [tensor for tensor in call.args[3:5] if tensor is not None]
    before = [tensor.clone() for tensor in statistics]
    result = run()
    for tensor, kept in zip(statistics, before, strict=True):
        tensor.copy_(kept)
    return result


@effect("lost-accumulation")
def lost_accumulation(call: Call, run: Run, _fault: Fault) -> Any:
    first = call.args[0].clone()
    result: Tensor = run()
    return result.copy_(first.expand_as(result)) if result.is_floating_point() else result


def _updated(call: Call) -> list[Tensor]:
    """What an in-place optimizer operator writes."""
    first = call.args[0]
    return list(first) if isinstance(first, list | tuple) else [first]


@effect("skipped-update")
def skipped_update(call: Call, run: Run, _fault: Fault) -> Any:
    targets = _updated(call)
    before = [tensor.clone() for tensor in targets]
    result = run()
    for tensor, kept in zip(targets, before, strict=True):
        tensor.copy_(kept)
    return result


@effect("doubled-update")
def doubled_update(call: Call, run: Run, _fault: Fault) -> Any:
    targets = _updated(call)
    before = [tensor.clone() for tensor in targets]
    result = run()
    for tensor, kept in zip(targets, before, strict=True):
        tensor.add_(tensor - kept)
    return result
