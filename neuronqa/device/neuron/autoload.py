"""The simulated device in a script of one's own, with no code of ours in it: `NEURONQA_PROFILE=ideal python train.py`.

torch calls `load` at the end of its import (entry point `torch.backends`); unless a profile is named it does nothing.
"""

from __future__ import annotations

import os
from typing import Final

PROFILE: Final = "NEURONQA_PROFILE"
OVERLAYS: Final = "NEURONQA_OVERLAYS"
"""Files, separated as PATH is."""


def load() -> None:
    """Register `neuron` and make `torch_neuronx` importable. Raises BadInput for an unknown profile or overlay."""
    profile = os.environ.get(PROFILE)
    if not profile:
        return
    import torch

    if hasattr(torch, "neuron"):  # the entry point of another copy of this package was first
        return
    from neuronqa.device.neuron import neuronx
    from neuronqa.device.neuron.adapter import NeuronAdapter
    from neuronqa.domain.build import BuildOrder

    overlays = tuple(filter(None, os.environ.get(OVERLAYS, "").split(os.pathsep)))
    device = NeuronAdapter().load(BuildOrder(device="neuron", profile=profile, overlays=overlays))
    neuronx.install(device.shim)
