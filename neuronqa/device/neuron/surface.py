"""`torch.neuron`: the module users of the real device know, under its real names.

Names and behaviour after torch_neuronx/neuron.py of the public source of April 2026.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from neuronqa.device.neuron.profile import Profile

DEVICE = "neuron"


@dataclass(frozen=True)
class DeviceProperties:
    """What `torch.neuron.get_device_properties` returns."""

    name: str
    total_memory: int


class NeuronModule(types.ModuleType):
    """Everything below `torch.neuron`."""

    Stream = torch.Stream
    Event = torch.Event
    Generator = torch.Generator

    def __init__(self, shim: Any, profile: Profile) -> None:
        super().__init__("torch.neuron", "The simulated Neuron device.")
        self._shim = shim
        self._profile = profile
        self.device = _device_context(self)

    # Presence

    def is_available(self) -> bool:
        return self.device_count() > 0

    def is_initialized(self) -> bool:
        return not self._is_in_bad_fork()

    def init(self) -> None:
        """Nothing is left to do: loading the device initialised it."""

    _lazy_init = init

    def _is_in_bad_fork(self) -> bool:
        return bool(self._shim.in_bad_fork())

    def device_count(self) -> int:
        """Logical cores."""
        return int(self._shim.device_count())

    def current_device(self) -> int:
        return int(self._shim.current_device())

    def set_device(self, device: Any) -> None:
        self._shim.set_device(self.index_of(device))

    def _exchange_device(self, device: int) -> int:
        before = self.current_device()
        if device >= 0:
            self._shim.set_device(device)
        return before

    _maybe_exchange_device = _exchange_device

    def index_of(self, device: Any = None) -> int:
        """The index that `device` (an int, a string, a torch.device, or None for the current one) means."""
        if device is None:
            return self.current_device()
        if isinstance(device, int):
            return device
        index = torch.device(device).index
        return self.current_device() if index is None else index

    def get_device_name(self, device: Any = None) -> str:
        return f"{DEVICE}:{self.index_of(device)}"

    def get_device_properties(self, device: Any = None) -> DeviceProperties:
        return DeviceProperties(self.get_device_name(device), self._profile.hardware.memory_bytes)

    def get_device_capability(self, _device: Any = None) -> tuple[int, int]:
        return (0, 0)

    # Streams: work is finished when an operator returns

    def synchronize(self, device: Any = None) -> None:
        """Wait for the device. An error of an earlier operator surfaces here."""
        del device
        self._shim.synchronize()

    def query(self) -> bool:
        return True

    def current_stream(self, device: Any = None) -> torch.Stream:
        return torch.accelerator.current_stream(self.index_of(device))

    default_stream = current_stream

    def set_stream(self, stream: torch.Stream) -> None:
        torch.accelerator.set_stream(stream)

    @contextlib.contextmanager
    def stream(self, stream: torch.Stream | None) -> Iterator[None]:
        del stream
        yield

    def wait_stream(self, stream: torch.Stream) -> None:
        self.current_stream().wait_stream(stream)

    def _sleep(self, _cycles: int) -> None:
        """A no-op in TorchNeuron too."""

    # Random numbers

    @property
    def default_generators(self) -> tuple[torch.Generator, ...]:
        return tuple(self._shim.default_generator(index) for index in range(self.device_count()))

    def _generator(self, device: Any = None) -> torch.Generator:
        generator: torch.Generator = self._shim.default_generator(self.index_of(device))
        return generator

    def manual_seed(self, seed: int) -> None:
        self._generator().manual_seed(int(seed))

    def manual_seed_all(self, seed: int) -> None:
        for generator in self.default_generators:
            generator.manual_seed(int(seed))

    def seed(self) -> int:
        return self._generator().seed()

    def seed_all(self) -> None:
        self.manual_seed_all(self.seed())

    def initial_seed(self) -> int:
        return self._generator().initial_seed()

    def get_rng_state(self, device: Any = None) -> torch.Tensor:
        return self._generator(device).get_state()

    def set_rng_state(self, state: torch.Tensor, device: Any = None) -> None:
        self._generator(device).set_state(state)

    def get_rng_state_all(self) -> list[torch.Tensor]:
        return [generator.get_state() for generator in self.default_generators]

    def set_rng_state_all(self, states: list[torch.Tensor]) -> None:
        for generator, state in zip(self.default_generators, states, strict=True):
            generator.set_state(state)

    # Memory

    def memory_allocated(self, device: Any = None) -> int:
        return int(self._shim.memory_use(self.index_of(device))[0])

    def max_memory_allocated(self, device: Any = None) -> int:
        return int(self._shim.memory_use(self.index_of(device))[1])

    memory_reserved = memory_allocated
    max_memory_reserved = max_memory_allocated

    def memory_stats(self, device: Any = None) -> dict[str, int]:
        current, peak, allocations = self._shim.memory_use(self.index_of(device))
        return {
            "allocated_bytes.all.current": current,
            "allocated_bytes.all.peak": peak,
            "allocation.all.allocated": allocations,
        }

    def memory_summary(self, device: Any = None, abbreviated: bool = False) -> str:
        del abbreviated
        return "\n".join(f"{name} {value}" for name, value in self.memory_stats(device).items())

    def mem_get_info(self, device: Any = None) -> tuple[int, int]:
        total = self._profile.hardware.memory_bytes
        return total - self.memory_allocated(device), total

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        self._shim.reset_peak(self.index_of(device))

    reset_max_memory_allocated = reset_peak_memory_stats

    def empty_cache(self) -> None:
        """There is no cache."""

    # Dtypes

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        del including_emulation
        return True

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float32, torch.float16, torch.bfloat16]

    # Compiled graphs

    def get_dynamo_metrics(self) -> list[dict[str, Any]]:
        """One record per compiled graph. Synchronises first, as the real call does."""
        from neuronqa.device.neuron.compiler import metrics

        self.synchronize()
        return metrics.records()

    def reset_dynamo_metrics(self) -> None:
        from neuronqa.device.neuron.compiler import metrics

        metrics.reset()


def _device_context(module: NeuronModule) -> Callable[[Any], contextlib.AbstractContextManager[None]]:
    class device(contextlib.AbstractContextManager[None]):  # noqa: N801  the name users type
        """Makes a device current for the time of a `with` block."""

        def __init__(self, device: Any) -> None:
            self.idx = module.index_of(device)

        def __enter__(self) -> None:
            self.before = module._exchange_device(self.idx)

        def __exit__(self, *_: object) -> None:
            module._exchange_device(self.before)

    return device
