"""The modelled cost of FlexAttention's own operators, which a graph holds whole, with score and mask as graphs inside.

Their work goes in tiles of scores, all of which are laid out when the graph is compiled: which blocks a mask leaves out
is data, and known only when it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from torch import fx

from neuronqa.device.neuron.cost.estimate import Cost, Operand, estimate
from neuronqa.device.neuron.cost.operands import operands
from neuronqa.device.neuron.profile import Hardware

FORWARD: Final = ("mul", "amax", "sub", "exp", "sum", "mul")
"""What a tile of scores goes through besides the modifications: scale, running maximum and sum, rescaled output."""
BACKWARD: Final = ("mul", "sub", "exp", "mul", "sub", "mul")
"""Scores anew, their gradient and that of the softmax."""


def costs(node: fx.Node, hardware: Hardware) -> Iterator[Cost]:
    """The matrix products of one call, then each element-wise step over all its scores."""
    query, key, value = operands([argument.meta["val"] for argument in node.args[:3]])  # type: ignore[union-attr]
    backward = "backward" in str(getattr(node.target, "__name__", ""))
    results = operands(node.meta.get("val"))
    yield estimate("flex_attention_backward" if backward else "flex_attention", [query, key, value], results, hardware)
    scores = Operand((*query.shape[:-1], key.shape[-2]), "float32")
    steps = BACKWARD if backward else FORWARD
    for name in (*steps, *_modifications(node)):
        yield estimate(name, [scores], [], hardware)


def _modifications(node: fx.Node) -> Iterator[str]:
    """The operators of the graphs of score, its gradient and mask that are computed for each score."""
    module = node.graph.owning_module
    for argument in node.all_input_nodes:
        part: Any = getattr(module, str(argument.target), None) if argument.op == "get_attr" else None
        if isinstance(part, fx.GraphModule):
            for inner in part.graph.nodes:
                if inner.op == "call_function" and hasattr(inner.target, "_schema"):
                    yield str(inner.target._schema.name).partition("::")[2]
