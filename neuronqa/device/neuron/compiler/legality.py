"""What refuses a graph: dynamic shapes, and what the profile says the compiler does not take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import fx

from neuronqa.device.neuron.compiler import predicates
from neuronqa.device.neuron.compiler.errors import NeuronCompileError
from neuronqa.device.neuron.profile import Profile, Refusal, Where


class Rules:
    """A profile's refusals inside graphs, by operator."""

    def __init__(self, profile: Profile) -> None:
        self._of_operator: Mapping[str, list[Refusal]] = defaultdict(list)
        self._of_all: list[Refusal] = []
        for refusal in profile.refusals:
            if Where.GRAPH not in refusal.where:
                continue
            if not refusal.operators:
                self._of_all.append(refusal)
            for name in refusal.operators:
                self._of_operator[name].append(refusal)

    def check_dtypes(self, node: fx.Node) -> bool:
        """Raise NeuronCompileError if a rule for every operator refuses `node`; was there one to ask?"""
        return self._check(node, self._of_all)

    def check_operator(self, node: fx.Node) -> bool:
        """Raise NeuronCompileError if a rule for its operator refuses `node`; was there one to ask?"""
        base, full = _names(node.target)
        overload = self._of_operator.get(full, ()) if full != base else ()
        return self._check(node, [*self._of_operator.get(base, ()), *overload])

    def _check(self, node: fx.Node, refusals: list[Refusal]) -> bool:
        for refusal in refusals:
            reason = _reason(refusal, node)
            if reason is not None:
                cause = f"aten::{_names(node.target)[1]} {reason}".strip()
                raise NeuronCompileError(f"{refusal.message}: {node.target} ({node.name})", cause)
        return bool(refusals)


def check_static_shapes(graph: fx.Graph) -> None:
    """Raise NeuronCompileError if any input has a size that is not a number."""
    dynamic = 0
    for node in graph.nodes:
        if node.op != "placeholder":
            continue
        value = node.meta.get("val")
        sizes: list[Any] = list(value.shape) if isinstance(value, torch.Tensor) else [value]
        dynamic += sum(isinstance(size, torch.SymInt) for size in sizes)
    if dynamic:
        raise NeuronCompileError(
            "[NCC_EMOD025] Dynamic shapes detected in the model, but torch-neuronx requires static shapes. "
            f"Found {dynamic} dynamic dimension(s)",
            "dynamic shapes",
        )


def _names(target: Any) -> tuple[str, str]:
    """`mm`, `mm.out` of `aten.mm.out`; a higher-order operator has one name only."""
    if isinstance(target, torch._ops.OpOverload):
        full = target._schema.name.partition("::")[2]
        overload = target._schema.overload_name
        return full, f"{full}.{overload}" if overload else full
    name = getattr(target, "__name__", str(target))
    return name, name


def _reason(refusal: Refusal, node: fx.Node) -> str | None:
    """What about `node` the refusal is for: a condition, a dtype, nothing in particular; None if it does not hold."""
    args, kwargs = fx.node.map_arg((node.args, node.kwargs), lambda argument: argument.meta.get("val"))
    if refusal.when:
        return refusal.when if predicates.named(refusal.when)(args, kwargs) else None
    if not refusal.dtypes:
        return ""
    found = list(_tensors((args, kwargs, node.meta.get("val")) if not refusal.operators else args))
    for tensor in found[:1] if refusal.operators else found:
        dtype = str(tensor.dtype).removeprefix("torch.")
        if dtype in refusal.dtypes:
            return dtype
    return None


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
