"""A small out-of-tree device and the adapter by which NeuronQA finds it (entry point `toy` of `neuronqa.devices`)."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.utils import backend_registration, cpp_extension

from neuronqa import cachedir
from neuronqa.device.torch_device import OpRecording, TorchAdapter, TorchDevice, arm
from neuronqa.domain.build import BuildOrder, Prepared
from neuronqa.domain.observation import OpUse, Placement

SOURCE = Path(__file__).with_name("toy.cpp")
BACKEND = "aot_eager"


class ToyModule:
    """`torch.toy`"""

    @staticmethod
    def is_available() -> bool:
        return True

    @staticmethod
    def is_initialized() -> bool:
        return True

    @staticmethod
    def _is_in_bad_fork() -> bool:
        return False

    @staticmethod
    def device_count() -> int:
        return 1

    @staticmethod
    def current_device() -> int:
        return 0

    @staticmethod
    def synchronize(device: Any = None) -> None:
        del device

    @staticmethod
    def manual_seed_all(seed: int) -> None:
        del seed

    @staticmethod
    def get_amp_supported_dtype() -> list[torch.dtype]:
        return [torch.bfloat16]


class Recording(OpRecording):
    """What a dispatch mode sees, and of it what the device itself says it left to the CPU."""

    def start(self) -> None:
        self._before = fallen()
        super().start()

    @property
    def complete(self) -> bool:
        return True

    def ops(self) -> tuple[OpUse, ...]:
        """The device counts operators of every kind of run, those of compiled graphs and of the optimizer too."""
        left = fallen() - self._before
        seen = tuple(use for use in super().ops() if use.op not in left)
        return seen + tuple(
            OpUse(op=op, dtype="", placement=Placement.CPU, mechanism=1, count=count) for op, count in left.items()
        )


class ToyDevice(TorchDevice):
    not_observable = ()

    def synchronize(self) -> None:
        ToyModule.synchronize()

    def recording(self) -> Recording:
        super().recording()
        return Recording()

    def memory_peak(self) -> int:
        return 0


class ToyAdapter(TorchAdapter):
    def __init__(self) -> None:
        super().__init__("toy")

    def prepare(self, order: BuildOrder) -> Prepared:
        prepared = super().prepare(order)
        digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()
        folder = cachedir.cache_dir() / "toy" / digest[:16]
        folder.mkdir(parents=True, exist_ok=True)
        library = folder / "toy.so"
        if not library.exists():
            cpp_extension.load(
                "toy", [str(SOURCE)], build_directory=str(folder), is_python_module=False, extra_cflags=["-O0"]
            )
        return replace(
            prepared,
            order=replace(order, binary=str(library)),
            vector=replace(prepared.vector, shim=digest),
        )

    def load(self, order: BuildOrder, last_op_file: str = "") -> ToyDevice:
        del last_op_file
        self._refuse(order)
        binary = order.binary or self.prepare(order).order.binary
        torch.ops.load_library(binary)
        backend_registration.rename_privateuse1_backend("toy")
        torch._register_device_module("toy", ToyModule())
        backend_registration.generate_methods_for_privateuse1_backend()
        # Else a module that moves gets new parameters, and tied ones come apart.
        torch.__future__.set_swap_module_params_on_conversion(True)
        planted, backend = arm(order, BACKEND)
        return ToyDevice(torch.device("toy", 0), backend, planted)


def fallen() -> Counter[str]:
    """How often each operator ran on the CPU so far."""
    lines = (line.split() for line in torch.ops.toy.fallbacks().splitlines())
    return Counter({name: int(count) for name, count in lines})
