"""Faults of the compiler: what the backend is made to do to a graph."""

from __future__ import annotations

import operator
import os
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from neuronqa.device.neuron.compiler.errors import NeuronCompileError
from neuronqa.device.neuron.faults import Fault

Compiled = Callable[..., Any]


class CompilerFault:
    """Steps in at three places: before a graph is compiled, on its operators, and around what runs it."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self._name = fault.kind.name

    @property
    def on_cpu(self) -> bool:
        """Does every graph run on the CPU?"""
        return self._name == "graph-on-cpu"

    def bypass(self, module: fx.GraphModule) -> Compiled | None:
        """What runs instead of anything compiled; None to compile."""
        return module.forward if self._name == "graph-not-executed" else None

    def change(self, graph: fx.Graph) -> None:
        """Fail, or spoil the graph."""
        match self._name:
            case "graph-refused":
                raise NeuronCompileError(
                    f"[{self._fault.parameters['code']}] an unsupported operator was used", "planted"
                )
            case "compiler-error":
                raise NeuronCompileError(
                    "[INTERNAL_ERROR] [NCC_IBTN006] planted error - Please open a support ticket at "
                    "https://github.com/aws-neuron/aws-neuron-sdk/issues/new",
                    "planted",
                )
            case "compiler-crash":
                os.abort()
            case "compiler-hang":
                time.sleep(3600)
            case "graph-dropped-operator":
                _drop_addition(graph)
            case "graph-wrong-constant":
                _change_constant(graph)
            case _:
                pass

    def wrap(self, run: Compiled) -> Compiled:
        """What runs instead of `run`, which takes the boxed list of arguments."""
        return _Stale(run) if self._name == "graph-stale" else run


class _Stale:
    """Repeats the first results."""

    def __init__(self, run: Compiled) -> None:
        self._run = run
        self._first: list[Any] | None = None

    def __call__(self, arguments: list[Any]) -> Any:
        results = self._run(arguments)
        if self._first is None:
            self._first = [item.clone() if isinstance(item, torch.Tensor) else item for item in results]
        return [item.clone() if isinstance(item, torch.Tensor) else item for item in self._first]


def _operators(graph: fx.Graph, *names: str) -> list[fx.Node]:
    return [
        node
        for node in graph.nodes
        if node.op == "call_function" and getattr(node.target, "__name__", "").partition(".")[0] in names
    ]


def _drop_addition(graph: fx.Graph) -> None:
    """The middle one whose first argument has the shape of the sum."""
    candidates = [
        (node, first)
        for node in _operators(graph, "add")
        for first in node.args[:1]
        if isinstance(first, fx.Node) and _shape(first) == _shape(node)
    ]
    if candidates:
        node, first = candidates[len(candidates) // 2]
        node.replace_all_uses_with(first)
        graph.erase_node(node)


def _change_constant(graph: fx.Graph) -> None:
    """The first number that multiplies or is added."""
    for node in _operators(graph, "mul", "add", "div"):
        if len(node.args) > 1 and isinstance(node.args[1], float):
            node.update_arg(1, operator.mul(node.args[1], 1.1))
            return


def _shape(node: fx.Node) -> Any:
    value = node.meta.get("val")
    return tuple(value.shape) if isinstance(value, torch.Tensor) else None
