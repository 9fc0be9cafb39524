"""The dynamo backend `neuron`: AOTAutograd, passes that refuse, and execution on the device.

The real backend lowers the graph to StableHLO and has neuronx-cc compile it. Here the captured graph is checked against
the profile and then run operator by operator, inside one compiled callable.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.registry import register_backend

from neuronqa.device.neuron import build
from neuronqa.device.neuron.compiler import legality, limits, metrics, passes, thrift
from neuronqa.device.neuron.compiler.cache import Artifact, NeffCache, default_folder
from neuronqa.device.neuron.compiler.errors import NeuronCompileError
from neuronqa.device.neuron.cost.graphs import of_graph
from neuronqa.device.neuron.faults import Fault, Site
from neuronqa.device.neuron.profile import Profile

log = logging.getLogger(__name__)

NAME = "neuron"
OPTIONS = ("model_name", "fallback_execution")


class NeuronBackend:
    """What `torch.compile(backend="neuron")` calls. Without a shim (to warm up), graphs run where their tensors are."""

    def __init__(self, profile: Profile, shim: Any = None, fault: Fault | None = None) -> None:
        self._profile = profile
        self._rules = legality.Rules(profile)
        self._shim = shim
        self._fault = _planted(fault)
        self._cache = _cache(profile) if shim is not None and self._fault is None else NeffCache(None, {})

    def __call__(
        self,
        module: fx.GraphModule,
        inputs: Sequence[Any],
        *,
        mode: str | None = None,
        options: dict[str, Any] | None = None,
    ) -> Callable[..., Any]:
        metrics.LEDGER.backend_calls += 1
        if mode not in (None, "default"):
            log.warning("Neuron backend does not support mode='%s', falling back to default mode.", mode)
        unknown = sorted(set(options or ()) - set(OPTIONS))
        if unknown:
            raise NeuronCompileError(
                f"Neuron backend has no option {unknown[0]!r}; it has {', '.join(OPTIONS)}", "unknown option"
            )
        bypassed: Callable[..., Any] | None = None if self._fault is None else self._fault.bypass(module)
        if bypassed is not None:
            return bypassed
        name = str((options or {}).get("model_name", "model"))
        compiler = aot_autograd(
            fw_compiler=lambda graph, _: self._compile(graph, f"{name}.forward", forward=True),
            bw_compiler=lambda graph, _: self._compile(graph, f"{name}.backward", forward=False),
            keep_inference_input_mutations=True,
        )
        return compiler(module, inputs)

    def _compile(self, module: fx.GraphModule, name: str, *, forward: bool) -> Callable[..., Any]:
        started = time.perf_counter_ns()
        on_device = self._fault is None or not self._fault.on_cpu
        if self._fault is not None:
            self._fault.change(module.graph)
        try:
            artifact, found = self._artifact(module.graph)
        except NeuronCompileError as error:
            if not self._profile.behaviour.whole_graph_fallback:
                raise
            log.warning("Falling back to original GraphModule execution: %s", error)
            artifact, found, on_device = Artifact(of_graph(module.graph, self._profile.hardware), 0.0), False, False
        checked = time.perf_counter_ns()
        compiled: Callable[..., Any] = self._runnable(module, on_device=on_device)
        metrics.LEDGER.add(
            metrics.CompiledGraph(
                name=name,
                forward=forward,
                operators=artifact.cost.operators,
                fx_passes_us=(checked - started) // 1000,
                compile_us=(time.perf_counter_ns() - checked) // 1000,
                modelled_compile_s=0.0 if found else artifact.modelled_compile_s,
                instructions=artifact.cost.instructions,
                has_collectives=any("c10d" in str(node.target) for node in module.graph.nodes),
            ),
            cached=found,
        )
        return compiled

    def _artifact(self, graph: fx.Graph) -> tuple[Artifact, bool]:
        """What the graph compiles to, and whether it was found. Raises NeuronCompileError for what is refused."""
        key = self._cache.key(graph)
        found = self._cache.find(key)
        runs = passes.run(graph, self._profile, self._rules)
        log.debug("passes: %s", ", ".join(f"{one.name} {one.nodes} nodes {one.microseconds} us" for one in runs))
        if found is not None:
            return found, True
        cost = of_graph(graph, self._profile.hardware)
        limits.check(cost, self._profile.hardware)
        artifact = Artifact(cost, cost.compile_s)
        self._cache.store(key, artifact)
        return artifact, False

    def _runnable(self, module: fx.GraphModule, *, on_device: bool) -> Any:
        module.graph.set_codegen(fx.graph._BoxedCodeGen())
        module.recompile()
        forward, shim = module.forward, self._shim
        state = None if shim is None else (shim.GraphState.INSIDE if on_device else shim.GraphState.ON_CPU)

        def run(arguments: list[Any]) -> Any:
            metrics.LEDGER.executions += 1
            if shim is None:
                return forward(arguments)
            before = shim.exchange_graph_state(state)
            try:
                return forward(arguments)
            finally:
                shim.exchange_graph_state(before)

        wrapped: Any = run if self._fault is None else self._fault.wrap(run)
        wrapped._boxed_call = True  # AOTAutograd hands over its own list, so that inputs die early
        return wrapped


def _cache(profile: Profile) -> NeffCache:
    base = {"profile": profile.sha256, "compiler": build.hash_of(Path(__file__).parent), "torch": torch.__version__}
    return NeffCache(default_folder(), base)


def _planted(fault: Fault | None) -> Any:
    if fault is None or fault.kind.site is not Site.COMPILER:
        return None
    from neuronqa.device.neuron.planted.compiler import CompilerFault

    return CompilerFault(fault)


def register(shim: Any, profile: Profile, fault: Fault | None = None) -> None:
    """Make `backend="neuron"` known to dynamo, with static shapes, and start counting."""
    backend = NeuronBackend(profile, shim, fault)

    def neuron(module: fx.GraphModule, inputs: Sequence[Any], **kwargs: Any) -> Callable[..., Any]:
        return backend(module, inputs, **kwargs)

    register_backend(neuron, name=NAME)
    torch._dynamo.config.automatic_dynamic_shapes = False  # a new shape is a new NEFF, never a dynamic one
    thrift.spare_function_names()
    metrics.listen()
