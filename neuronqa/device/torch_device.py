"""Any accelerator torch can see, and the CPU with a compile backend under test (`cpu:inductor`)."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from neuronqa.device.dispatch import DispatchRecording
from neuronqa.device.outside import GRAPH_WAYS, Planted, operator, tracing
from neuronqa.device.protocol import Device, Recording
from neuronqa.domain.build import BuildOrder, BuildVector, Prepared
from neuronqa.domain.observation import GraphUse, OpUse, Placement
from neuronqa.errors import BadInput

DEFAULT_BACKEND = "inductor"


def known(name: str) -> bool:
    """Can torch run something called `name` here?"""
    kind, _, backend = name.partition(":")
    if kind == "cpu":
        return not backend or backend in torch._dynamo.list_backends(exclude_tags=())
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    return accelerator is not None and accelerator.type == kind


@dataclass(frozen=True)
class TorchAdapter:
    """Loads nothing, for torch has loaded it already; arms a fault from outside where the order holds one."""

    name: str

    def prepare(self, order: BuildOrder) -> Prepared:
        """Nothing to build: torch came with it. Raises BadInput like :meth:`load`."""
        self._refuse(order)
        versions = {
            "torch": torch.__version__,
            "transformers": version("transformers"),
            "python": platform.python_version(),
            "cpu": torch.backends.cpu.get_cpu_capability(),
        }
        vector = BuildVector(adapter=self.name, profile="", profile_sha256="", shim="", passes="", versions=versions)
        return Prepared(order=order, vector=vector, seconds=0.0)

    def load(self, order: BuildOrder, last_op_file: str = "") -> Device:
        """Raises BadInput for what only a device of our own can do."""
        self._refuse(order)
        del last_op_file  # Only a device that writes it in C survives its own crash.
        kind, _, backend = self.name.partition(":")
        planted, counting = arm(order, backend or DEFAULT_BACKEND)
        return TorchDevice(torch.device(kind), counting, planted)

    def _refuse(self, order: BuildOrder) -> None:
        if order.overlays or order.forced_cpu:
            raise BadInput(f"{self.name} takes neither overlays nor forced operators", hint="use the device neuron")


def arm(order: BuildOrder, backend: str) -> tuple[Planted | None, CountingBackend]:
    """What an order plants from outside: in operators, or in the graphs of the compile backend. Raises BadInput."""
    fault = str(order.fault["kind"]) if order.fault else ""
    if fault in GRAPH_WAYS:
        return None, CountingBackend(backend, fault=fault)
    return Planted(order.fault) if order.fault else None, CountingBackend(backend)


class TorchDevice:
    """A device that reports nothing of itself: what a dispatch mode sees is all there is."""

    not_observable: tuple[str, ...] = ("fallback",)

    def __init__(self, device: torch.device, backend: CountingBackend, planted: Planted | None) -> None:
        self.torch_device = device
        self._backend = backend
        self._planted = planted

    def synchronize(self) -> None:
        if self.torch_device.type != "cpu":
            torch.accelerator.synchronize()

    def recording(self) -> Recording:
        """Arms what was planted: on the CPU it would else spoil the building of the model as well."""
        if self._planted is not None:
            self._planted.__enter__()  # type: ignore[no-untyped-call]
            self._planted = None
        return OpRecording()

    def compile_backend(self) -> Callable[..., Any]:
        return self._backend

    def graph_use(self) -> GraphUse:
        counted = self._backend
        return GraphUse(
            graphs=len(counted.ops),
            ops=tuple(counted.ops),
            backend_calls=counted.calls,
            executions=counted.executions,
        )

    def error_code(self, error: BaseException) -> str:
        del error
        return ""

    def memory_peak(self) -> int:
        return 0 if self.torch_device.type == "cpu" else torch.accelerator.max_memory_allocated()


@dataclass
class CountingBackend:
    """Another compile backend, counted: how often it was asked, what it was given, how often its code ran."""

    name: str
    calls: int = 0
    executions: int = 0
    ops: list[int] = field(default_factory=list)
    fault: str = ""
    """Of `outside.GRAPH_WAYS`, planted in every graph."""

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, graph: Any, example_inputs: Any, **options: Any) -> Callable[..., Any]:
        self.calls += 1
        compiled = torch._dynamo.lookup_backend(self.name)(graph, example_inputs, **options)
        self.ops.append(sum(node.op.startswith("call_") for node in graph.graph.nodes))

        way = GRAPH_WAYS.get(self.fault)

        def counted(*args: Any) -> Any:
            return run(*args) if way is None else way(run, graph, args)

        def run(*args: Any) -> Any:
            self.executions += 1
            return compiled(*args)

        return counted


class OpRecording(DispatchRecording):
    """Counts the operators that pass the dispatcher, by name and dtype. Where each ran, it cannot know."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._uses: dict[tuple[str, str], tuple[int, tuple[tuple[int, ...], ...]]] = {}

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    @property
    def complete(self) -> bool:
        """A compiled graph may run code that passes no dispatcher."""
        return False

    def ops(self) -> tuple[OpUse, ...]:
        return tuple(
            OpUse(op=op, dtype=dtype, placement=Placement.NATIVE, count=count, shapes=shapes)
            for (op, dtype), (count, shapes) in self._uses.items()
        )

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not tracing():
            self._note(func, args, result)
        return result

    def _note(self, func: Any, args: Any, result: Any) -> None:
        given = [arg for arg in tree_leaves(args) if isinstance(arg, Tensor)]
        first = next((t for t in [*given, *tree_leaves(result)] if isinstance(t, Tensor)), None)
        dtype = str(first.dtype).removeprefix("torch.") if first is not None else ""
        count, shapes = self._uses.get((operator(func), dtype), (0, tuple(tuple(t.shape) for t in given)))
        self._uses[operator(func), dtype] = (count + 1, shapes)
