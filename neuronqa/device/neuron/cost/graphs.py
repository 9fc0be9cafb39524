"""The modelled cost of a captured graph, and how long the compiler would take over it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import fx

from neuronqa.device.neuron.cost import flex
from neuronqa.device.neuron.cost.compile_time import compile_seconds
from neuronqa.device.neuron.cost.estimate import Cost, estimate
from neuronqa.device.neuron.cost.operands import operands
from neuronqa.device.neuron.profile import Hardware


@dataclass(frozen=True, slots=True)
class GraphCost:
    """Sums over a graph's operators. Modelled."""

    operators: int
    instructions: int
    seconds: float
    flops: int
    nbytes: int
    memory: int = 0
    """Bytes of tensors that exist at once, at the most."""

    @property
    def compile_s(self) -> float:
        """How long the compiler would take."""
        return compile_seconds(self.operators, self.instructions)


def total(costs: Iterable[Cost]) -> GraphCost:
    """Add up operators that run one after the other."""
    found = list(costs)
    return GraphCost(
        operators=len(found),
        instructions=sum(cost.instructions for cost in found),
        seconds=sum(cost.seconds for cost in found),
        flops=sum(cost.flops for cost in found),
        nbytes=sum(cost.nbytes for cost in found),
    )


def of_graph(graph: fx.Graph, hardware: Hardware) -> GraphCost:
    """The cost of every call in `graph`, whose nodes carry fake values."""
    return replace(total(_costs(graph, hardware)), memory=peak_memory(graph))


def peak_memory(graph: fx.Graph) -> int:
    """Bytes alive at once when nodes run in order and each value dies after its last use; views take none."""
    last_use = {argument: node for node in graph.nodes for argument in node.all_input_nodes}
    alive = peak = 0
    size: dict[fx.Node, int] = {}
    for node in graph.nodes:
        size[node] = 0 if _is_view(node) else sum(one.nbytes for one in operands(node.meta.get("val")))
        alive += size[node]
        peak = max(peak, alive)
        alive -= sum(size[used] for used in node.all_input_nodes if last_use[used] is node and used.op != "placeholder")
    return peak


def _is_view(node: fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target.is_view


def _costs(graph: fx.Graph, hardware: Hardware) -> Iterator[Cost]:
    for node in graph.nodes:
        if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
            inputs = fx.node.map_arg((node.args, node.kwargs), lambda argument: argument.meta.get("val"))
            yield of_call(node.target, inputs, node.meta.get("val"), hardware)
        elif node.op == "call_function" and "flex_attention" in getattr(node.target, "__name__", ""):
            yield from flex.costs(node, hardware)


def of_call(op: torch._ops.OpOverload, inputs: Any, outputs: Any, hardware: Hardware) -> Cost:
    """The cost of one call with these tensors, fake or real."""
    base = op._schema.name.partition("::")[2]
    return estimate(base, operands(inputs), operands(outputs), hardware)
