"""FlexAttention refuses devices it does not know by name; TorchNeuron supports it, so this device does."""

from __future__ import annotations

from torch import Tensor

from neuronqa.device.neuron.afterwards import when_imported
from neuronqa.device.neuron.surface import DEVICE

_MODULE = "torch.nn.attention.flex_attention"


def allow_flex_attention() -> None:
    """Let `flex_attention` take tensors on the device."""
    when_imported(_MODULE, _allow)


def _allow() -> None:
    from torch.nn.attention import flex_attention

    refuse_unknown = flex_attention._validate_device

    def validate_device(query: Tensor, key: Tensor, value: Tensor) -> None:
        if query.device.type != DEVICE:
            refuse_unknown(query, key, value)

    flex_attention._validate_device = validate_device
