"""The pass `complex-decomposition`: a complex tensor becomes its real and its imaginary part.

What the pass has no rule for keeps its complex arguments, put together again from their parts, and is what the compiler
then refuses or not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import fx

aten = torch.ops.aten

Pair = tuple[fx.Node, fx.Node]
Emit = Callable[..., fx.Node]


def decompose(graph: fx.Graph) -> int:
    """Rewrite `graph` and return how many operators were decomposed."""
    parts: dict[fx.Node, Pair] = {}
    decomposed = 0
    for node in list(graph.nodes):
        rule = _RULES.get(node.target) if node.op == "call_function" else None
        if rule is None or not _concerns(node):
            continue
        with graph.inserting_before(node):
            made = rule(_emitter(graph), node, parts)
            if made is None:
                continue
            decomposed += 1
            if isinstance(made, tuple):
                parts[node] = made
                if any(user.target not in _RULES for user in node.users):
                    whole = _emitter(graph)(aten.complex.default, *made)
                    node.replace_all_uses_with(whole, delete_user_cb=lambda user: user.target not in _RULES)
                    parts[whole] = made
            else:
                node.replace_all_uses_with(made)
    if decomposed:
        graph.eliminate_dead_code()
        graph.lint()
    return decomposed


def _emitter(graph: fx.Graph) -> Emit:
    def emit(op: Any, *args: Any) -> fx.Node:
        node = graph.call_function(op, args)
        values = fx.node.map_arg(args, lambda argument: argument.meta["val"])
        node.meta["val"] = op(*values)
        return node

    return emit


def _is_complex(value: Any) -> bool:
    found = value.meta.get("val") if isinstance(value, fx.Node) else value
    return isinstance(found, complex) or (isinstance(found, torch.Tensor) and found.is_complex())


def _concerns(node: fx.Node) -> bool:
    return _is_complex(node) or any(_is_complex(argument) for argument in node.args)


def _parts(emit: Emit, value: Any, known: dict[fx.Node, Pair]) -> tuple[Any, Any]:
    """Real and imaginary part of a node or a number."""
    if not isinstance(value, fx.Node):
        return complex(value).real, complex(value).imag
    if value in known:
        return known[value]
    if not _is_complex(value):
        return value, 0.0
    plane = emit(aten.view_as_real.default, value)
    known[value] = (emit(aten.select.int, plane, -1, 0), emit(aten.select.int, plane, -1, 1))
    return known[value]


def _from_plane(emit: Emit, node: fx.Node, _known: dict[fx.Node, Pair]) -> Pair:
    return emit(aten.select.int, node.args[0], -1, 0), emit(aten.select.int, node.args[0], -1, 1)


def _to_plane(emit: Emit, node: fx.Node, known: dict[fx.Node, Pair]) -> fx.Node:
    return emit(aten.stack.default, list(_parts(emit, node.args[0], known)), -1)


def _together(emit: Emit, node: fx.Node, _known: dict[fx.Node, Pair]) -> Pair:
    del emit
    real, imaginary = node.args
    assert isinstance(real, fx.Node)
    assert isinstance(imaginary, fx.Node)
    return real, imaginary


def _product(emit: Emit, node: fx.Node, known: dict[fx.Node, Pair]) -> Pair:
    a, b = _parts(emit, node.args[0], known)
    c, d = _parts(emit, node.args[1], known)
    times = aten.mul.Tensor
    if d == 0.0:
        return emit(times, a, c), emit(times, b, c)
    if b == 0.0:
        return emit(times, c, a), emit(times, d, a)
    real = emit(aten.sub.Tensor, emit(times, a, c), emit(times, b, d))
    return real, emit(aten.add.Tensor, emit(times, a, d), emit(times, b, c))


def _sum(op: Any) -> Callable[[Emit, fx.Node, dict[fx.Node, Pair]], Pair | None]:
    def rule(emit: Emit, node: fx.Node, known: dict[fx.Node, Pair]) -> Pair | None:
        if node.kwargs or not all(_is_complex(argument) for argument in node.args):
            return None
        (a, b), (c, d) = (_parts(emit, argument, known) for argument in node.args)
        return emit(op, a, c), emit(op, b, d)

    return rule


def _polar(emit: Emit, node: fx.Node, _known: dict[fx.Node, Pair]) -> Pair:
    size, angle = node.args
    return (
        emit(aten.mul.Tensor, size, emit(aten.cos.default, angle)),
        emit(aten.mul.Tensor, size, emit(aten.sin.default, angle)),
    )


def _conjugate(emit: Emit, node: fx.Node, known: dict[fx.Node, Pair]) -> Pair:
    real, imaginary = _parts(emit, node.args[0], known)
    return real, emit(aten.neg.default, imaginary)


def _each(op: Any) -> Callable[[Emit, fx.Node, dict[fx.Node, Pair]], Pair]:
    """For operators that only move elements."""

    def rule(emit: Emit, node: fx.Node, known: dict[fx.Node, Pair]) -> Pair:
        real, imaginary = _parts(emit, node.args[0], known)
        return emit(op, real, *node.args[1:]), emit(op, imaginary, *node.args[1:])

    return rule


_MOVING: Final = (
    aten.unsqueeze.default,
    aten.squeeze.dim,
    aten.view.default,
    aten._unsafe_view.default,
    aten.expand.default,
    aten.permute.default,
    aten.transpose.int,
    aten.slice.Tensor,
    aten.select.int,
    aten.index_select.default,
)
_RULES: Final[dict[Any, Any]] = {
    aten.view_as_complex.default: _from_plane,
    aten.view_as_real.default: _to_plane,
    aten.complex.default: _together,
    aten.polar.default: _polar,
    aten.mul.Tensor: _product,
    aten.add.Tensor: _sum(aten.add.Tensor),
    aten.sub.Tensor: _sum(aten.sub.Tensor),
    aten._conj.default: _conjugate,
    aten._conj_physical.default: _conjugate,
    **{op: _each(op) for op in _MOVING},
}
