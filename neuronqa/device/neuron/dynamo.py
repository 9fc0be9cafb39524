"""Tells dynamo what kind of device this is."""

from __future__ import annotations

from typing import Any

import torch
from torch._dynamo.device_interface import DeviceInterface, register_interface_for_device

from neuronqa.device.neuron.surface import DEVICE, NeuronModule


def register(module: NeuronModule) -> None:
    """Register the device interface for `neuron` and for every index of it."""

    class NeuronInterface(DeviceInterface):
        """What dynamo may ask of the device while it traces."""

        device: Any = module.device
        Stream = torch.Stream
        Event = torch.Event
        current_device = staticmethod(module.current_device)
        set_device = staticmethod(module.set_device)
        device_count = staticmethod(module.device_count)
        is_available = staticmethod(module.is_available)
        synchronize = staticmethod(module.synchronize)
        exchange_device = staticmethod(module._exchange_device)
        maybe_exchange_device = staticmethod(module._maybe_exchange_device)
        get_device_properties = staticmethod(module.get_device_properties)
        current_stream = staticmethod(module.current_stream)
        set_stream = staticmethod(module.set_stream)
        stream = staticmethod(module.stream)
        is_bf16_supported = staticmethod(module.is_bf16_supported)

        class Worker:
            """What inductor's compile workers would ask; there are none."""

            set_device = staticmethod(module.set_device)
            current_device = staticmethod(module.current_device)
            get_device_properties = staticmethod(module.get_device_properties)

        @staticmethod
        def get_raw_stream(_index: int) -> int:
            return 0

        @staticmethod
        def get_compute_capability(_device: Any = None) -> int:
            return 0

    register_interface_for_device(DEVICE, NeuronInterface)
    for index in range(module.device_count()):
        register_interface_for_device(f"{DEVICE}:{index}", NeuronInterface)
