"""The simulated device as an adapter: loaded once into a device child, as a build order says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from neuronqa.device.neuron import build, faults, profile, registration, shim
from neuronqa.device.neuron.profile import Profile
from neuronqa.device.neuron.recorder import LedgerRecording
from neuronqa.device.neuron.surface import DEVICE, NeuronModule
from neuronqa.device.neuron.vector import build_vector
from neuronqa.domain.build import BuildOrder, Prepared
from neuronqa.domain.observation import GraphUse
from neuronqa.errors import BadInput

_CODE = re.compile(r"\bNCC_[A-Z]{4}\d{3}\b|\bNRT status \d+\b")


class NeuronDevice:
    """A loaded simulated device."""

    def __init__(self, shim_module: Any, module: NeuronModule, profile: Profile) -> None:
        self.shim = shim_module
        self._module = module
        self.profile = profile

    @property
    def torch_device(self) -> torch.device:
        return torch.device(DEVICE, self._module.current_device())

    @property
    def not_observable(self) -> tuple[str, ...]:
        return ()

    def synchronize(self) -> None:
        self._module.synchronize()

    def recording(self) -> LedgerRecording:
        return LedgerRecording(self.shim)

    @contextmanager
    def planted(self, ordered: Mapping[str, Any]) -> Iterator[None]:
        """The loaded device with a fault in it, for as long as the context is open.

        Not for a fault of the compiler, which comes with the backend. Raises BadInput like loading.
        """
        from neuronqa.device.neuron.planted.arm import arm

        undo = arm(self.shim, faults.parse(ordered))
        try:
            yield
        finally:
            undo()
            with suppress(RuntimeError):  # An error that nobody waited for is not the next run's.
                self.synchronize()

    def compile_backend(self) -> str | Callable[..., Any]:
        return DEVICE

    def examine(
        self,
        whole: Callable[[], tuple[nn.Module, dict[str, Any]]],
        dtype: torch.dtype,
        loss: Callable[[Any], torch.Tensor],
        budget_s: float,
    ) -> None:
        """Compile forward and backward of what `whole` makes, without a tensor being allocated.

        Raises NeuronCompileError for what the compiler refuses, NeuronCompileTimeout for what would take longer than
        `budget_s`.
        """
        from neuronqa.device.neuron.compiler.examine import examine

        examine(whole, dtype, loss, self.torch_device, self.profile, budget_s)

    def offer_names(self) -> None:
        """Make `import torch_neuronx` work: libraries look for it to know that there is a device."""
        from neuronqa.device.neuron import neuronx

        neuronx.install(self.shim)

    def graph_use(self) -> GraphUse:
        from neuronqa.device.neuron.compiler import metrics

        return metrics.graph_use()

    def error_code(self, error: BaseException) -> str:
        """The code in the message of `error` or of what caused it."""
        seen: BaseException | None = error
        while seen is not None:
            found = _CODE.search(str(seen))
            if found:
                return found.group().replace("NRT status", "NRT")
            seen = seen.__cause__
        return ""

    def failed_op(self) -> str:
        """The operator that an exception left last, or an empty string."""
        return str(self.shim.last_failed_operator())

    def memory_now(self) -> int:
        """Bytes in use on the current device."""
        return self._module.memory_allocated()

    def memory_peak(self) -> int:
        return max(self._module.max_memory_allocated(index) for index in range(self._module.device_count()))


class NeuronAdapter:
    """Prepares and loads the simulated device."""

    def prepare(self, order: BuildOrder) -> Prepared:
        """Build the device, or find it in the cache. Raises BadInput for an unknown profile or overlay,
        EnvironmentFault for a machine that cannot build.
        """
        vector = build_vector(order)
        built = build.ensure()
        return Prepared(order=replace(order, binary=str(built.path)), vector=vector, seconds=built.seconds)

    def load(self, order: BuildOrder, last_op_file: str = "") -> NeuronDevice:
        """Register the device with torch and arm what `order` says.

        Without `order.binary` the device is built, or found in the cache. Raises BadInput for an unknown profile or
        fault, EnvironmentFault when the device cannot be built or loaded.
        """
        if order.device != DEVICE:
            raise BadInput(f"the simulated device is named {DEVICE!r}", where=order.device)
        chosen = profile.load(order.profile)
        fault = None if order.fault is None else faults.parse(order.fault)
        binary = Path(order.binary) if order.binary else build.ensure().path
        shim_module = shim.load(binary)
        module = registration.register(shim_module, chosen, fault)
        if last_op_file:
            shim_module.map_mark_file(last_op_file)
        if order.overlays:
            from neuronqa.device.neuron import overlay

            overlay.install(shim_module, order.overlays)
        if fault is not None:
            from neuronqa.device.neuron.planted.arm import arm

            arm(shim_module, fault)
        _check_names(shim_module, order.forced_cpu)
        for name in order.forced_cpu:
            shim_module.force_to_cpu(name)
        return NeuronDevice(shim_module, module, chosen)


def _check_names(shim_module: Any, operators: tuple[str, ...]) -> None:
    known = {name for name, _ in shim_module.operators()} if operators else set()
    unknown = [name for name in operators if name not in known]
    if unknown:
        raise BadInput(f"the device has no operator {unknown[0]!r}", hint="names look like aten::add.Tensor")
