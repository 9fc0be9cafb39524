"""Limits of the compiler that depend on how large a graph is. The sizes are modelled."""

from __future__ import annotations

import os
from typing import Final

from neuronqa.device.neuron.compiler.errors import NeuronCompileError, NeuronCompileTimeout
from neuronqa.device.neuron.cost.graphs import GraphCost
from neuronqa.device.neuron.profile import Hardware
from neuronqa.errors import BadInput

TIMEOUT: Final = "TORCH_NEURONX_NEURONX_CC_TIMEOUT"


def check(cost: GraphCost, hardware: Hardware) -> None:
    """Raise NeuronCompileError for too many instructions, NeuronCompileTimeout for too long a compilation."""
    limit = hardware.instruction_limit
    if limit and cost.instructions > limit:
        raise NeuronCompileError(
            f"[NCC_EBVF030] the number of instructions generated ({cost.instructions}, modelled) exceeds the limit "
            f"({limit})",
            "too many instructions",
        )
    if hardware.memory_bytes and cost.memory > hardware.memory_bytes:
        raise NeuronCompileError(
            f"[NCC_EOOM001] the combined memory needed for the model's tensors ({cost.memory} bytes, modelled) exceeds "
            f"the HBM limit ({hardware.memory_bytes})",
            "more memory than the device has",
        )
    seconds = compile_limit_s(hardware)
    if seconds and cost.compile_s > seconds:
        raise NeuronCompileTimeout(
            f"neuronx-cc compilation timed out after {seconds} s (it would take {cost.compile_s:.0f} s, modelled)",
            "compilation takes too long",
        )


def compile_limit_s(hardware: Hardware) -> float:
    """What TORCH_NEURONX_NEURONX_CC_TIMEOUT says, else the profile; 0 for no limit."""
    named = os.environ.get(TIMEOUT)
    if named is None:
        return hardware.compile_limit_s
    try:
        return float(named)
    except ValueError:
        raise BadInput(f"{TIMEOUT} must be a number of seconds", where=named) from None
