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
