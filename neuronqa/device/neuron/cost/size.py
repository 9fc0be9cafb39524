"""Would a model of full size fit the device? A model of a model: nothing is run, everything here is modelled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from neuronqa.device.neuron.cost.compile_time import compile_seconds
from neuronqa.device.neuron.profile import Hardware
from neuronqa.domain.outcome import Kind

OPTIMIZER_STATES: Final = 2
"""AdamW keeps two moments for each parameter, in the parameter's dtype."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What one training step of the whole model takes. Bytes."""

    weights: int
    buffers: int
    activations: int
    """What forward keeps for backward."""
    operators: int
    """Of the larger of the two graphs, forward and backward."""
    instructions: int
    """The same."""
    partial: tuple[str, ...] = ()
    """What could not be modelled: `activations` where no input of full size is known. The demand is then too low."""

    @property
    def state(self) -> int:
        """Weights, gradients and the optimizer's moments, which can be sharded."""
        return self.weights * (2 + OPTIMIZER_STATES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The answer, and the smallest number of logical devices it holds for."""

    kind: Kind
    devices: int
    memory: int
    """Bytes a device."""
    instructions: int
    """Of one device's larger graph."""
    compile_s: float
    demand: Demand
    words: str
    modelled: bool = True


def fit(demand: Demand, hardware: Hardware, compile_limit_s: float) -> Fit:
    """Shard the model over as few devices as will hold it, and see what stands in the way at the largest number.

    State and matrix products are split evenly (fully sharded, tensor parallel); what a step keeps is split with them.
    Limits of 0 are none.
    """
    answer = None
    devices = 1
    while devices <= hardware.instance_devices:
        answer = _on(devices, demand, hardware, compile_limit_s)
        if answer.kind is Kind.FIT_PASS:
            return answer
        devices *= 2
    assert answer is not None, "an instance has at least one device"
    return answer


def _on(devices: int, demand: Demand, hardware: Hardware, compile_limit_s: float) -> Fit:
    memory = (demand.state + demand.activations) // devices + demand.buffers
    instructions = demand.instructions // devices
    compile_s = compile_seconds(demand.operators, instructions)
    if hardware.memory_bytes and memory > hardware.memory_bytes:
        kind, words = Kind.FIT_MEMORY, f"{_gib(memory)} a device, it has {_gib(hardware.memory_bytes)}"
    elif hardware.instruction_limit and instructions > hardware.instruction_limit:
        limit = hardware.instruction_limit
        kind, words = Kind.FIT_INSTRUCTIONS, f"a graph of {instructions} instructions, the compiler takes {limit}"
    elif compile_limit_s and compile_s > compile_limit_s:
        kind, words = Kind.FIT_COMPILE_TIME, f"{compile_s:.0f} s to compile, {compile_limit_s:.0f} s are allowed"
    else:
        kind = Kind.FIT_PASS
        words = f"{_gib(memory)} a device, {instructions} instructions, {compile_s:.0f} s to compile"
    many = "1 device" if devices == 1 else f"{devices} devices"
    return Fit(
        kind=kind,
        devices=devices,
        memory=memory,
        instructions=instructions,
        compile_s=compile_s,
        demand=demand,
        words=f"on {many}, modelled: {words}",
    )


def _gib(count: int) -> str:
    return f"{count / 2**30:.2f} GiB"
