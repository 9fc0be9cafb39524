"""Names of devices, and the adapters that load them."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Final

from neuronqa.device.protocol import Adapter
from neuronqa.errors import BadInput

SIMULATED: Final = "neuron"
PLUGIN_GROUP: Final = "neuronqa.devices"
"""Entry points of this group are callables without arguments that return an Adapter."""


def adapter(name: str) -> Adapter:
    """Return the adapter for `name`; only the device child may go on to load it.

    `neuron` is the simulated device; `cpu:BACKEND` is the CPU with a compile backend under test; a plugin's name is
    what its entry point says; anything else must be an accelerator torch knows. Raises BadInput.
    """
    if name == SIMULATED:
        from neuronqa.device.neuron.adapter import NeuronAdapter

        neuron: Adapter = NeuronAdapter()
        return neuron
    for point in entry_points(group=PLUGIN_GROUP):
        if point.name == name:
            plugin: Adapter = point.load()()
            return plugin
    from neuronqa.device.torch_device import TorchAdapter, known

    if not known(name):
        raise BadInput(f"no device named {name!r}", hint="try neuron, cpu:inductor, or an accelerator torch can see")
    return TorchAdapter(name)
