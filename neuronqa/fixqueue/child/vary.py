"""One call becomes many: what kernels are usually wrong for."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, Final

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from neuronqa.fixqueue.child.capture import Made
from neuronqa.fixqueue.kinds import Kind

_TILE: Final = 131
"""Just over what a tile of the device holds."""

_SPECIAL: Final = (float("nan"), float("inf"), float("-inf"), -0.0, 0.0)

Change = Callable[[Tensor, random.Random], Tensor]


def varied(made: Made, dtype: torch.dtype, generator: random.Random) -> Iterator[tuple[Kind, Made]]:
    """The call in `dtype` as it is, and then in every way that can be made of it. Not all of them are valid."""
    plain = _mapped(made, lambda tensor, _: _cast(tensor, dtype), generator)
    yield Kind.PLAIN, _mapped(plain, _fresh, generator)
    yield Kind.STRIDES, _mapped(_mapped(plain, _fresh, generator), _strided, generator)
    yield Kind.STRIDES, _mapped(_mapped(plain, _fresh, generator), transposed, generator)
    yield Kind.NOT_FINITE, _mapped(plain, _not_finite, generator)
    yield Kind.NOT_FINITE, _mapped(plain, _half_special, generator)
    yield Kind.TIES, _mapped(plain, _rounded, generator)
    yield Kind.LARGE, _mapped(plain, lambda tensor, _: _scaled(tensor, 300.0), generator)
    yield Kind.SMALL, _mapped(plain, lambda tensor, _: _scaled(tensor, 1e-3), generator)
    yield Kind.EMPTY, _mapped(plain, _emptied, generator)
    yield Kind.EMPTY, _mapped(plain, _pointed, generator)
    yield Kind.SHAPES, _mapped(plain, _tiled, generator)
    yield Kind.SHAPES, _mapped(plain, _sliced, generator)
    yield from ((Kind.BROADCASTING, one) for one in _broadcast(plain, generator))
    yield from ((Kind.SAME, one) for one in _same(plain))


def _mapped(made: Made, change: Change, generator: random.Random) -> Made:
    def changed(leaf: Any) -> Any:
        return change(leaf, generator) if isinstance(leaf, Tensor) else leaf

    args, kwargs = tree_map(changed, (made.args, made.kwargs))
    return Made(tuple(args), kwargs)


def _cast(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """What was a number becomes one of `dtype`; indexes and masks stay."""
    if not tensor.is_floating_point():
        return tensor
    if dtype == torch.bool:
        return tensor > 0
    return (
        (tensor * 3).round().clamp(-100 if dtype.is_signed else 0, 100).to(dtype)
        if not dtype.is_floating_point
        else tensor.to(dtype)
    )


def _fresh(tensor: Tensor, generator: random.Random) -> Tensor:
    """Other numbers of the same size, sign and order: no kernel has seen them. Indexes and masks stay."""
    if not tensor.is_floating_point() or not tensor.numel():
        return tensor
    factor = 1 + 0.25 * (torch.rand(tensor.shape, generator=_seeded(generator)) - 0.5)
    return (tensor.float() * factor).to(tensor.dtype)


def _strided(tensor: Tensor, generator: random.Random) -> Tensor:
    """Every second element of a wider row, from an offset on."""
    del generator
    if tensor.dim() == 0:
        return tensor
    wide = torch.full((*tensor.shape[:-1], 2 * tensor.shape[-1] + 1), 0, dtype=tensor.dtype)
    view = wide[..., 1::2]
    return view.copy_(tensor)


def transposed(tensor: Tensor, generator: random.Random | None = None) -> Tensor:
    """Dimensions in reverse order of memory."""
    del generator
    order = tuple(reversed(range(tensor.dim())))
    return tensor.permute(order).contiguous().permute(order)


def _not_finite(tensor: Tensor, generator: random.Random) -> Tensor:
    """A few of its numbers are special."""
    if not tensor.is_floating_point() or not tensor.numel():
        return tensor
    flat = tensor.clone().reshape(-1)
    for value in _SPECIAL:
        flat[generator.randrange(flat.numel())] = value
    return flat.reshape(tensor.shape)


def _half_special(tensor: Tensor, generator: random.Random) -> Tensor:
    """Half of its numbers are special, so that in several arguments they meet, and meet plain ones of any size."""
    if not tensor.is_floating_point() or not tensor.numel():
        return tensor
    seeded = _seeded(generator)
    special = torch.tensor(_SPECIAL, dtype=tensor.dtype)[torch.randint(len(_SPECIAL), tensor.shape, generator=seeded)]
    return torch.where(torch.rand(tensor.shape, generator=seeded) < 0.5, special, tensor)


def _rounded(tensor: Tensor, generator: random.Random) -> Tensor:
    del generator
    return tensor.round() if tensor.is_floating_point() else tensor


def _scaled(tensor: Tensor, factor: float) -> Tensor:
    return (tensor.float() * factor).to(tensor.dtype) if tensor.is_floating_point() else tensor


def _emptied(tensor: Tensor, generator: random.Random) -> Tensor:
    del generator
    return tensor[:0] if tensor.dim() else tensor


def _pointed(tensor: Tensor, generator: random.Random) -> Tensor:
    del generator
    return tensor.reshape(-1)[0].clone() if tensor.numel() else tensor


def _tiled(tensor: Tensor, generator: random.Random) -> Tensor:
    """More rows than a tile has. Their numbers differ."""
    if not 0 < tensor.numel() <= 64 or tensor.dim() == 0:
        return tensor
    times = -(-_TILE // tensor.shape[0])
    return _fresh(tensor.repeat(times, *[1] * (tensor.dim() - 1)), generator)


def _sliced(tensor: Tensor, generator: random.Random) -> Tensor:
    """One row less."""
    del generator
    return tensor[:-1].contiguous() if tensor.dim() and tensor.shape[0] > 1 else tensor


def _broadcast(made: Made, generator: random.Random) -> Iterator[Made]:
    """Of two tensors of one shape, either loses a dimension or has it repeated without memory."""
    places = [at for at, arg in enumerate(made.args) if isinstance(arg, Tensor) and arg.dim()]
    if len(places) < 2 or len({made.args[at].shape for at in places}) > 1:
        return
    for at in places[:2]:
        tensor = _fresh(made.args[at], generator)
        narrow = tensor[:1]
        for other in (narrow, narrow.expand(tensor.shape), tensor[0]):
            yield Made((*made.args[:at], other, *made.args[at + 1 :]), made.kwargs)


def _same(made: Made) -> Iterator[Made]:
    """One tensor as two arguments."""
    places = [at for at, arg in enumerate(made.args) if isinstance(arg, Tensor)][:2]
    if len({(made.args[at].shape, made.args[at].dtype) for at in places}) == 1 and len(places) == 2:
        args = list(made.args)
        args[places[1]] = args[places[0]]
        yield Made(tuple(args), made.kwargs)


def _seeded(generator: random.Random) -> torch.Generator:
    return torch.Generator().manual_seed(generator.getrandbits(48))
