"""Reads the device's ledger as operator uses."""

from __future__ import annotations

from typing import Any

from neuronqa.domain.observation import OpUse, Placement

NOT_REPORTED = (4, 5)
"""Mechanisms that TorchNeuron's own tracker does not list: hidden in a kernel, and a whole graph."""


class LedgerRecording:
    """Everything between any `start` and the `stop` after it, added up."""

    def __init__(self, shim: Any) -> None:
        self._shim = shim
        shim.clear_uses()

    def start(self) -> None:
        self._shim.set_recording(True)

    def stop(self) -> None:
        self._shim.set_recording(False)

    def ops(self) -> tuple[OpUse, ...]:
        return tuple(_use(*use) for use in self._shim.uses())

    @property
    def complete(self) -> bool:
        """Every operator passes through the device's own entries."""
        return True


def _use(
    op: str,
    dtype: Any,
    mechanism: Any,
    backward: bool,
    count: int,
    nbytes: int,
    ns: int,
    shapes: list[list[int]],
    strides: list[list[int]],
) -> OpUse:
    number = int(mechanism)
    return OpUse(
        op=op,
        dtype="" if dtype is None else str(dtype).removeprefix("torch."),
        placement=Placement.CPU if number else Placement.NATIVE,
        mechanism=number,
        reported=number not in NOT_REPORTED,
        count=count,
        nbytes=nbytes,
        ns=ns,
        shapes=tuple(tuple(shape) for shape in shapes),
        strides=tuple(tuple(one) for one in strides),
        backward=backward,
    )
