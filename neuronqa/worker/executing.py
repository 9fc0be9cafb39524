"""What a case's phase executes."""

from __future__ import annotations

from typing import assert_never

from neuronqa.domain.case import Phase
from neuronqa.worker.decoding import decode
from neuronqa.worker.training import Marks, Notes, Subject, differentiate, infer, train


def execute(subject: Subject, phase: Phase, steps: int, notes: Notes, mark: Marks) -> None:
    """Run `subject` once as `phase` says; `steps` are optimizer steps. Without training, in evaluation mode."""
    subject.module.train(phase is Phase.TRAIN and subject.module.training)
    match phase:
        case Phase.TRAIN:
            train(subject, steps, notes, mark)
        case Phase.INFER:
            infer(subject, notes, mark)
        case Phase.GRADIENT:
            differentiate(subject, notes, mark)
        case Phase.GENERATE:
            decode(subject, notes, mark)
        case _:
            assert_never(phase)
