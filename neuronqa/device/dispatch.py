"""What the recordings have in common that watch from the dispatcher."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode

from neuronqa.domain.observation import OpUse


class DispatchRecording(TorchDispatchMode):
    """A mode that starts and pauses as a device's own recording does; one that counts operators says which."""

    def start(self) -> None:
        self.__enter__()  # type: ignore[no-untyped-call]

    def stop(self) -> None:
        self.__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def ops(self) -> tuple[OpUse, ...]:
        return ()

    @property
    def complete(self) -> bool:
        return False
