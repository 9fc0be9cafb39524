"""The built-in solver: kernels for operators that are plain compositions of what the device has.

It needs no model behind it and guesses nothing: of an operator whose definition is written here it knows the parts, and
where a profile lacks one of them, it gives up. What it writes is verified like anything else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from neuronqa.device.neuron import profile

FLOATS: Final = ("float32", "bfloat16", "float16")
NUMBERS: Final = (*FLOATS, "int64", "int32", "int16", "int8", "uint8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """An operator in terms of others."""

    arguments: str
    body: tuple[str, ...]
    parts: tuple[str, ...]
    """Base names of the operators it is made of."""
    dtypes: tuple[str, ...] = FLOATS


def solve(bundle: Mapping[str, Any]) -> str | None:
    """An overlay for the item of a bundle; None where its definition, or a part of it, is missing."""
    primitives = profile.load(bundle["profile"]).primitive
    definition = proved(str(bundle["operator"]), primitives)
    return None if definition is None else overlay(str(bundle["operator"]), definition)


def proved(operator: str, primitives: Collection[str]) -> Definition | None:
    """The definition of an operator whose every part is a primitive."""
    found = DEFINITIONS.get(operator)
    return found if found is not None and set(found.parts) <= set(primitives) else None


def overlay(operator: str, definition: Definition) -> str:
    """The file."""
    name = operator.removeprefix("aten::").replace(".", "_").strip("_")
    dtypes = ", ".join(f'"{dtype}"' for dtype in definition.dtypes)
    lines = [
        f'"""{operator}, made of {", ".join(definition.parts)}."""',
        "",
        *(("import math", "") if any("math." in line for line in definition.body) else ()),
        "import torch",
        "",
        "from neuronqa.device.neuron.overlay import kernel",
        "",
        "",
        f'@kernel("{operator}", dtypes=({dtypes},))',
        f"def {name}_kernel({definition.arguments}):",
        *(f"    {line}" for line in definition.body),
    ]
    return "\n".join(lines) + "\n"


_EITHER: Final = ("ne", "where")
DEFINITIONS: Final[Mapping[str, Definition]] = {
    "aten::minimum": Definition(
        arguments="a, b",
        body=("return torch.where((a < b) | (a != a), a, b)",),
        parts=("lt", "bitwise_or", *_EITHER),
        dtypes=NUMBERS,
    ),
    "aten::maximum": Definition(
        arguments="a, b",
        body=("return torch.where((a > b) | (a != a), a, b)",),
        parts=("gt", "bitwise_or", *_EITHER),
        dtypes=NUMBERS,
    ),
    "aten::fmin": Definition(
        arguments="a, b",
        body=("return torch.where((b < a) | (a != a), b, a)",),
        parts=("lt", "bitwise_or", *_EITHER),
        dtypes=NUMBERS,
    ),
    "aten::fmax": Definition(
        arguments="a, b",
        body=("return torch.where((b > a) | (a != a), b, a)",),
        parts=("gt", "bitwise_or", *_EITHER),
        dtypes=NUMBERS,
    ),
    "aten::hardtanh": Definition(
        arguments="x, low=-1.0, high=1.0", body=("return torch.clamp(x, low, high)",), parts=("clamp",)
    ),
    "aten::hardsigmoid": Definition(
        arguments="x", body=("return torch.clamp(x + 3.0, 0.0, 6.0) / 6.0",), parts=("add", "clamp", "div")
    ),
    "aten::hardswish": Definition(
        arguments="x", body=("return x * torch.clamp(x + 3.0, 0.0, 6.0) / 6.0",), parts=("add", "clamp", "div", "mul")
    ),
    "aten::leaky_relu": Definition(
        arguments="x, slope=0.01", body=("return torch.where(x > 0, x, x * slope)",), parts=("gt", "mul", "where")
    ),
    "aten::leaky_relu_backward": Definition(
        arguments="grad, x, slope, of_result",
        body=("return torch.where(x > 0, grad, grad * slope)",),
        parts=("gt", "mul", "where"),
    ),
    "aten::roll": Definition(
        arguments="x, shifts, dims=()",
        body=(
            "if x.numel() == 0:",
            "    return x.clone()",
            "if len(dims) == 0:",
            "    return roll_kernel(x.reshape(-1), shifts, (0,)).reshape(x.shape)",
            "for shift, dim in zip(shifts, dims):",
            "    size = x.shape[dim]",
            "    start = (size - shift) % size",
            "    x = torch.cat([x.narrow(dim, start, size - start), x.narrow(dim, 0, start)], dim)",
            "return x.clone()",
        ),
        parts=("cat", "clone"),
        dtypes=NUMBERS,
    ),
    "aten::mse_loss": Definition(
        arguments="x, target, reduction=1",
        body=(
            "off = x.to(torch.float32) - target.to(torch.float32)",
            "loss = off * off",
            "loss = loss if reduction == 0 else loss.mean() if reduction == 1 else loss.sum()",
            "return loss.to(x.dtype)",
        ),
        parts=("mean", "mul", "sub", "sum"),
    ),
    "aten::mse_loss_backward": Definition(
        arguments="grad, x, target, reduction",
        body=(
            "off = 2 * (x.to(torch.float32) - target.to(torch.float32)) * grad.to(torch.float32)",
            "return (off / x.numel() if reduction == 1 else off).to(x.dtype)",
        ),
        parts=("div", "mul", "sub"),
    ),
    "aten::argmax": Definition(
        arguments="x, dim=None, keepdim=False",
        body=(
            "flat = x.reshape(-1) if dim is None or x.dim() == 0 else x",
            "at = 0 if dim is None or x.dim() == 0 else dim % x.dim()",
            "size = flat.shape[at]",
            "shape = [size if one == at else 1 for one in range(flat.dim())]",
            "places = torch.arange(size, device=x.device).reshape(shape).expand(flat.shape)",
            "best = (flat == torch.amax(flat, at, keepdim=True)) | (flat != flat)",
            "found = torch.amin(torch.where(best, places, torch.full_like(places, size)), at, keepdim=keepdim)",
            "if x.dim() == 0:",
            "    return found.reshape(())",
            "return found.reshape([1] * x.dim()) if dim is None and keepdim else found",
        ),
        parts=("amax", "amin", "arange", "bitwise_or", "eq", *_EITHER),
        dtypes=NUMBERS,
    ),
    "aten::var_mean.correction": Definition(
        arguments="x, dim=None, correction=None, keepdim=False",
        body=(
            "dims = [one % max(x.dim(), 1) for one in dim or ()] or list(range(x.dim()))",
            "count = math.prod(x.shape[one] for one in dims) if x.dim() else 1",
            "y = x.to(torch.float32)",
            "mean = torch.sum(y, dims, keepdim=True) / count if x.dim() else y",
            "left = max(count - (1 if correction is None else correction), 0)",
            "off = (y - mean) * (y - mean)",
            "var = (torch.sum(off, dims, keepdim=True) if x.dim() else off) / left",
            "var, mean = var.to(x.dtype), mean.to(x.dtype)",
            "if keepdim or x.dim() == 0:",
            "    return var, mean",
            "shape = [size for one, size in enumerate(x.shape) if one not in dims]",
            "return var.reshape(shape), mean.reshape(shape)",
        ),
        parts=("div", "mul", "sub", "sum"),
    ),
    "aten::native_batch_norm": Definition(
        arguments="x, weight, bias, mean, var, training, momentum, eps",
        body=(
            "y = x.to(torch.float32)",
            "dims, shape = [0, *range(2, x.dim())], [1, -1] + [1] * (x.dim() - 2)",
            "if training:",
            "    middle = torch.mean(y, dims)",
            "    off = y - middle.reshape(shape)",
            "    spread = torch.mean(off * off, dims)",
            "    scale = torch.rsqrt(spread + eps)",
            "    count = x.numel() // x.shape[1]",
            "    if mean is not None:",
            "        mean.copy_(mean * (1 - momentum) + middle * momentum)",
            "    if var is not None:",
            "        var.copy_(var * (1 - momentum) + spread * (momentum * count / max(count - 1, 1)))",
            "else:",
            "    scale = torch.rsqrt(var.to(torch.float32) + eps)",
            "    off = y - mean.to(torch.float32).reshape(shape)",
            "result = off * scale.reshape(shape)",
            "result = result if weight is None else result * weight.to(torch.float32).reshape(shape)",
            "result = result if bias is None else result + bias.to(torch.float32).reshape(shape)",
            "nothing = scale[:0]",
            "saved = (middle, scale) if training else (nothing.clone(), nothing.clone())",
            "return result.to(x.dtype), *saved",
        ),
        parts=("add", "clone", "copy", "mean", "mul", "rsqrt", "sub"),
        dtypes=("float32",),
    ),
    "aten::_weight_norm_interface": Definition(
        arguments="v, g, dim=0",
        body=(
            "dims = [one for one in range(v.dim()) if one != dim]",
            "norm = torch.sqrt(torch.sum(v * v, dims, keepdim=True))",
            "return v * (g / norm), norm",
        ),
        parts=("div", "mul", "sqrt", "sum"),
        dtypes=("float32",),
    ),
    "aten::_weight_norm_interface_backward": Definition(
        arguments="grad, v, g, norm, dim",
        body=(
            "dims = [one for one in range(v.dim()) if one != dim]",
            "along = torch.sum(grad * v, dims, keepdim=True)",
            "return (g / norm) * (grad - v * (along / (norm * norm))), along / norm",
        ),
        parts=("div", "mul", "sub", "sum"),
        dtypes=("float32",),
    ),
}
