"""An optimizer's step, judged from the gradient it was given.

Gradients are compared for themselves, and a step that follows from a slightly different gradient may differ by the
whole learning rate: AdamW's first step is nearly the gradient's sign.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from neuronqa.checks.tensors import (
    ROUNDOFF,
    Array,
    Arrays,
    Exempt,
    Measured,
    Yardstick,
    gauge,
    measure,
    sharpen,
    spread,
)
from neuronqa.domain.case import Dtype
from neuronqa.domain.optimizer import ADAMW
from neuronqa.domain.policy import Thresholds


def adamw_step(start: Array, gradient: Array | None) -> Array:
    """What the first step of AdamW adds to a parameter, in float64; nothing where there is no gradient.

    After one step both moments' bias corrections cancel: the step is lr * g / (|g| + eps), after the decay
    (torch.optim.AdamW, "Decoupled Weight Decay Regularization").
    """
    if gradient is None:
        return np.zeros(start.shape, dtype=np.float64)
    slope = np.asarray(gradient, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        return -ADAMW.lr * (ADAMW.weight_decay * start + slope / (np.abs(slope) + ADAMW.eps))


def yardsticks(
    names: Iterable[str],
    arrays: Arrays,
    weights: Arrays,
    gradients: Mapping[str, Yardstick],
    dtype: Dtype,
    thresholds: Thresholds,
) -> dict[str, Yardstick]:
    """`update/NAME` for every parameter the reference stepped; exempt where its gradient is noise, which AdamW turns
    into a step of any size."""
    stepped = [name for name in names if f"same/param/{name}" in arrays]
    found = sharpen([_yardstick(name, arrays, weights, ROUNDOFF[dtype]) for name in stepped], dtype, thresholds)
    for name in stepped:
        gradient = gradients.get(f"grad/{name}")
        if gradient is not None and gradient.exempt is not None:
            found[f"update/{name}"] = replace(found[f"update/{name}"], exempt=Exempt.NOISE)
    return found


def _yardstick(name: str, arrays: Arrays, weights: Arrays, roundoff: float) -> Yardstick:
    """How far the CPU's own step is from the step its own gradient asks for in float64, or how far rounding the
    parameter alone may put it, for a parameter of few elements may round well by luck."""
    start = weights[f"param/{name}"]
    asked = adamw_step(start, arrays.get(f"same/grad/{name}"))
    took = np.asarray(arrays[f"same/param/{name}"], dtype=np.float64) - start
    noise, gains = spread(asked, [took])
    return gauge(f"update/{name}", took, asked, np.maximum(noise, roundoff * np.abs(start)), gains)


def compare(name: str, weights: Arrays, device: Arrays, yardstick: Yardstick) -> Measured:
    """The device's step against the step its own gradient asks for."""
    start = weights[f"param/{name}"]
    after = device[f"param/{name}"]
    gradient = device.get(f"grad/{name}")
    if after.shape != start.shape or (gradient is not None and gradient.shape != start.shape):
        return measure(after, start, yardstick)
    asked = adamw_step(start, gradient)
    return measure(np.asarray(after, dtype=np.float64) - start, asked, yardstick)
