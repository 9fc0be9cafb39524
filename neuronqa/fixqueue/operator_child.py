"""What an operator is, told by PyTorch in a process of its own: its schema, its meaning in Python, one call on the CPU.

python -m neuronqa.fixqueue.operator_child aten::maximum [FILE OF A CALL]
"""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

VALUES: Final = 8
LEAVES: Final = 12
SOURCE: Final = 2500
"""Characters of a decomposition."""


def main() -> None:
    """Write the description to stdout, as JSON."""
    name, *rest = sys.argv[1:]
    json.dump(describe(name, Path(rest[0]) if rest else None), sys.stdout)


def describe(name: str, file: Path | None) -> dict[str, Any]:
    """`name`: `aten::add.Tensor`; `file`: arguments of a call, kept by a reproduction."""
    packet, _, overload = name.removeprefix("aten::").partition(".")
    found = getattr(torch.ops.aten, packet, None)
    chosen = getattr(found, overload or "default", None) if found is not None else None
    if found is None or chosen is None:
        return {"schema": "", "overloads": [], "meaning": "", "call": None}
    return {
        "schema": str(chosen._schema),
        "overloads": sorted(found.overloads()),
        "meaning": _meaning(chosen),
        "call": _call(found, file) if file is not None else None,
    }


def _meaning(operator: Any) -> str:
    """The source of PyTorch's own decomposition, where it has one."""
    from torch._decomp import decomposition_table

    function = decomposition_table.get(operator)
    try:
        return inspect.getsource(inspect.unwrap(function))[:SOURCE] if function is not None else ""
    except (OSError, TypeError):
        return ""


def _call(packet: Any, file: Path) -> dict[str, Any]:
    """The call as a program makes it: a number may stand where the overload that is reached takes a tensor."""
    args, kwargs = torch.load(file, weights_only=True)
    torch.manual_seed(0)
    shown: dict[str, Any] = {"arguments": [_shown(leaf) for leaf in tree_leaves((args, kwargs))[:LEAVES]]}
    try:
        with torch.no_grad():
            result = packet(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - what the CPU says of the call is what is shown
        return shown | {"raises": f"{type(error).__name__}: {error}"[:300]}
    return shown | {"results": [_shown(leaf) for leaf in tree_leaves(result)[:LEAVES]]}


def _shown(leaf: Any) -> Any:
    if not isinstance(leaf, Tensor):
        return leaf if isinstance(leaf, int | float | bool | str) or leaf is None else str(leaf)
    first = leaf.detach().flatten()[:VALUES]
    return {
        "dtype": str(leaf.dtype).removeprefix("torch."),
        "shape": list(leaf.shape),
        "strides": list(leaf.stride()),
        "first": [f"{value:.6g}" for value in first.double().tolist()] if not leaf.is_complex() else [],
    }


if __name__ == "__main__":
    main()
