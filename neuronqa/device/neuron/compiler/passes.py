"""The passes a captured graph goes through, in order. Each has a name, and says how many nodes it was about."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import torch
from torch import fx

from neuronqa.device.neuron.compiler import complex as complex_pass
from neuronqa.device.neuron.compiler.legality import Rules, check_static_shapes
from neuronqa.device.neuron.profile import Profile


@dataclass(frozen=True, slots=True)
class Pass:
    """Rewrites or checks a graph. Raises NeuronCompileError for what the compiler would refuse."""

    name: str
    run: Callable[[fx.Graph, Profile, Rules], int]


@dataclass(frozen=True, slots=True)
class PassRun:
    """What one pass did to one graph."""

    name: str
    nodes: int
    microseconds: int


def _shape_check(graph: fx.Graph, _profile: Profile, _rules: Rules) -> int:
    check_static_shapes(graph)
    return sum(node.op == "placeholder" for node in graph.nodes)


def _complex_decomposition(graph: fx.Graph, profile: Profile, _rules: Rules) -> int:
    return complex_pass.decompose(graph) if profile.behaviour.decompose_complex else 0


def _dtype_legalisation(graph: fx.Graph, _profile: Profile, rules: Rules) -> int:
    """Rules for every operator: dtypes nothing in a graph may have."""
    return sum(rules.check_dtypes(node) for node in _calls(graph))


def _attention_legalisation(graph: fx.Graph, _profile: Profile, rules: Rules) -> int:
    return sum(rules.check_operator(node) for node in _calls(graph) if _attends(node))


def _operator_legalisation(graph: fx.Graph, _profile: Profile, rules: Rules) -> int:
    return sum(rules.check_operator(node) for node in _calls(graph) if not _attends(node))


PASSES: Final = (
    Pass("shape-check", _shape_check),
    Pass("complex-decomposition", _complex_decomposition),
    Pass("dtype-legalisation", _dtype_legalisation),
    Pass("attention-legalisation", _attention_legalisation),
    Pass("operator-legalisation", _operator_legalisation),
)


def run(graph: fx.Graph, profile: Profile, rules: Rules) -> tuple[PassRun, ...]:
    """Run every pass. Raises NeuronCompileError."""
    runs = []
    for one in PASSES:
        started = time.perf_counter_ns()
        nodes = one.run(graph, profile, rules)
        runs.append(PassRun(one.name, nodes, (time.perf_counter_ns() - started) // 1000))
    return tuple(runs)


def _calls(graph: fx.Graph) -> Iterator[fx.Node]:
    return (node for node in graph.nodes if node.op == "call_function")


def _attends(node: fx.Node) -> bool:
    name = str(getattr(node.target, "__name__", ""))
    return "attention" in name or (isinstance(node.target, torch._ops.HigherOrderOperator) and "flex" in name)
