"""Faults that change the numbers a right kernel returned."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from neuronqa.device.neuron.faults import Fault
from neuronqa.device.neuron.planted.effects import (
    EFFECTS,
    Call,
    Run,
    change,
    effect,
    flat,
    floats,
    own_noise,
    scale_of,
)


@change("scale")
def scale(result: Tensor, fault: Fault) -> None:
    result.mul_(fault.number("factor"))


@change("scaled-gradient")
def scaled_gradient(result: Tensor, fault: Fault) -> None:
    result.mul_(fault.number("factor"))


@change("offset")
def offset(result: Tensor, fault: Fault) -> None:
    result.add_(scale_of(result) * fault.number("share"))


@change("sign")
def sign(result: Tensor, _fault: Fault) -> None:
    result.neg_()


@change("negated-gradient")
def negated_gradient(result: Tensor, _fault: Fault) -> None:
    result.neg_()


@change("zero")
def zero(result: Tensor, _fault: Fault) -> None:
    result.zero_()


@change("zeroed-gradient")
def zeroed_gradient(result: Tensor, _fault: Fault) -> None:
    result.zero_()


@change("nan")
def nan(result: Tensor, _fault: Fault) -> None:
    flat(result)[(0,) * flat(result).dim()] = float("nan")


@change("inf")
def inf(result: Tensor, _fault: Fault) -> None:
    flat(result)[(0,) * flat(result).dim()] = float("inf")


@change("noise")
def noise(result: Tensor, fault: Fault) -> None:
    generator = torch.Generator().manual_seed(result.numel())
    result.mul_(1 + own_noise(result, generator) * fault.number("share"))


@change("twin-noise")
def twin_noise(result: Tensor, fault: Fault) -> None:
    """Within a rounding or so of the right result: no check may notice."""
    generator = torch.Generator().manual_seed(result.numel())
    share = fault.number("roundings") * torch.finfo(result.dtype).eps / 2
    noisy = result.float() * (1 + own_noise(result.float(), generator) * share)
    result.copy_(noisy)


@change("saturate")
def saturate(result: Tensor, fault: Fault) -> None:
    limit = float(scale_of(result)) * fault.number("limit")
    result.clamp_(-limit, limit)


@change("bf16-result")
def bf16_result(result: Tensor, _fault: Fault) -> None:
    result.copy_(result.bfloat16())


@change("tf32-result")
def tf32_result(result: Tensor, _fault: Fault) -> None:
    if result.dtype is torch.float32:
        dense = result.contiguous()
        dense.view(torch.int32).bitwise_and_(~0x1FFF)
        result.copy_(dense)


@change("half-range")
def half_range(result: Tensor, fault: Fault) -> None:
    gain = fault.number("gain")
    result.copy_(result.mul(gain).half().to(result.dtype).div_(gain))


@change("swapped-rows")
def swapped_rows(result: Tensor, _fault: Fault) -> None:
    rows = flat(result)
    if rows.shape[0] > 1:
        rows[:2] = rows[:2].flip(0)


@change("shifted")
def shifted(result: Tensor, _fault: Fault) -> None:
    result.copy_(flat(result).roll(1, -1).view_as(result))


@change("reversed")
def backwards(result: Tensor, _fault: Fault) -> None:
    result.copy_(flat(result).flip(-1).view_as(result))


@change("dropped-last")
def dropped_last(result: Tensor, _fault: Fault) -> None:
    flat(result)[..., -1] = 0


@change("dropped-tile")
def dropped_tile(result: Tensor, _fault: Fault) -> None:
    flat(result)[..., -_quarter(result) :] = 0


@change("repeated-tile")
def repeated_tile(result: Tensor, _fault: Fault) -> None:
    size = _quarter(result)
    flat(result)[..., -size:] = flat(result)[..., :size].clone()


@change("flipped-bit")
def flipped_bit(result: Tensor, _fault: Fault) -> None:
    """The lowest exponent bit: one element twice or half as large."""
    rows = flat(result)
    first = (0,) * rows.dim()
    rows[first] = rows[first] * 2


@change("uninitialised")
def uninitialised(result: Tensor, _fault: Fault) -> None:
    flat(result)[..., -1] = float(scale_of(result)) * 3.0


@effect("layout")
def layout(call: Call, run: Run, _fault: Fault) -> Any:
    result = run()
    if any(not tensor.is_contiguous() for tensor in floats(call.args)):
        for tensor in floats(result)[:1]:
            tensor.mul_(1.1)
    return result


class Stale:
    """Keeps the last result of each shape."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, ...], Tensor] = {}

    def __call__(self, call: Call, run: Run, _fault: Fault) -> Any:
        del call
        result = run()
        for tensor in floats(result)[:1]:
            shape = tuple(tensor.shape)
            fresh = tensor.clone()
            if shape in self._last:
                tensor.copy_(self._last[shape])
            self._last[shape] = fresh
        return result


class LateWrite:
    """Returns what is right and spoils it afterwards: a kernel that is still writing when its result is in use."""

    def __init__(self) -> None:
        self._last: Tensor | None = None

    def __call__(self, call: Call, run: Run, fault: Fault) -> Any:
        del call
        if self._last is not None:
            self._last.mul_(fault.number("factor"))
        result = run()
        self._last = next(iter(floats(result)), None)
        return result


class Unstable:
    """Noise that never repeats."""

    def __init__(self) -> None:
        self._generator = torch.Generator().manual_seed(0)

    def __call__(self, call: Call, run: Run, fault: Fault) -> Any:
        del call
        result = run()
        for tensor in floats(result)[:1]:
            tensor.mul_(1 + own_noise(tensor, self._generator) * fault.number("share"))
        return result


class LateDrift:
    """Right until enough calls were made."""

    def __init__(self) -> None:
        self._calls = 0

    def __call__(self, call: Call, run: Run, fault: Fault) -> Any:
        del call
        self._calls += 1
        result = run()
        if self._calls > fault.number("after"):
            for tensor in floats(result)[:1]:
                tensor.mul_(fault.number("factor"))
        return result


EFFECTS |= {"stale": Stale, "late-write": LateWrite, "unstable": Unstable, "late-drift": LateDrift}


def _quarter(tensor: Tensor) -> int:
    return max(flat(tensor).shape[-1] // 4, 1)
