"""`neuronqa.check`: the whole ladder for a module in hand."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from neuronqa.checkup.examine import Examiner
from neuronqa.checkup.given import hand_over
from neuronqa.checkup.value import Checkup
from neuronqa.sweep.policies import load_policy

DEVICE = "neuron"
PROFILE = "trn2-sdk2.33"
POLICY = "gating"


class Checks:
    """Checks modules one after the other; each device is prepared and its worker started once."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="neuronqa-")))
        self._examiners: dict[tuple[str, str, tuple[str, ...]], Examiner] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.close()

    def check(
        self,
        module: Any,
        inputs: Any,
        loss: Any = None,
        optimizer: Any = None,
        *,
        device: str = DEVICE,
        profile: str = PROFILE,
        overlays: Sequence[str] = (),
        policy: str = POLICY,
    ) -> Checkup:
        """See :func:`check`."""
        asked = load_policy(policy)
        target = hand_over(self._folder, module, inputs, loss, optimizer)
        key = (device, profile, tuple(overlays))
        if key not in self._examiners:
            self._examiners[key] = self._open.enter_context(Examiner(device, profile, overlays))
        return self._examiners[key].examine(target, asked)


def check(
    module: Any,
    inputs: Any,
    loss: Any = None,
    optimizer: Any = None,
    *,
    device: str = DEVICE,
    profile: str = PROFILE,
    overlays: Sequence[str] = (),
    policy: str = POLICY,
) -> Checkup:
    """Check `module` on `device`, in processes of their own; `module` itself is left as it is.

    `inputs`: keyword arguments of forward in a dict, positional ones in a tuple, or a single one; on the CPU.
    `loss`: a function of the outputs, or of the outputs and the inputs, that returns a scalar tensor; without one, a
    fixed random projection of the outputs. `optimizer`: an optimizer of the module's parameters, or a function that
    makes one of them; without one, AdamW. `policy`: `gating`, `quick`, or a file.

    Returns a :class:`neuronqa.checkup.value.Checkup`; printed, it tells rung by rung what holds. Raises BadInput for
    what cannot be checked, EnvironmentFault for a machine that cannot. To be called on the main thread.
    """
    with Checks() as checks:
        return checks.check(
            module, inputs, loss, optimizer, device=device, profile=profile, overlays=overlays, policy=policy
        )
