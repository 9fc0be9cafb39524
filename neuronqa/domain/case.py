"""A case: one workload on one device in one variant; and the attempts made at it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from neuronqa.domain.identity import content_hash


class Mode(StrEnum):
    """How the model is executed."""

    EAGER = "eager"
    COMPILE = "compile"


class Dtype(StrEnum):
    """The dtype of weights and floating-point inputs."""

    FP32 = "fp32"
    BF16 = "bf16"


class Phase(StrEnum):
    """What is executed."""

    TRAIN = "train"
    """Forward, loss, backward, optimizer steps."""
    INFER = "infer"
    """Forward without gradients."""
    GRADIENT = "gradient"
    """Forward and backward, once; forward alone where nothing can be differentiated."""
    GENERATE = "generate"
    """Prefill and decode with a cache, teacher-forced."""


@dataclass(frozen=True, slots=True, order=True)
class Variant:
    """How a workload is run. Text form: `eager/fp32/train`, and `eager/fp32/train/4` on more than one rank."""

    mode: Mode
    dtype: Dtype
    phase: Phase
    ranks: int = 1

    def __post_init__(self) -> None:
        if self.ranks < 1:
            raise ValueError(f"ranks must be at least 1, not {self.ranks}")

    def __str__(self) -> str:
        text = f"{self.mode.value}/{self.dtype.value}/{self.phase.value}"
        return text if self.ranks == 1 else f"{text}/{self.ranks}"

    @classmethod
    def parse(cls, text: str) -> Variant:
        """Read back what `str()` wrote. Raises ValueError for anything else."""
        match = _VARIANT.fullmatch(text)
        if match is None:
            raise ValueError(f"not a variant: {text!r} (expected e.g. eager/fp32/train)")
        mode, dtype, phase, ranks = match.groups()
        return cls(Mode(mode), Dtype(dtype), Phase(phase), int(ranks or 1))


_VARIANT: Final = re.compile(
    f"({'|'.join(Mode)})/({'|'.join(Dtype)})/({'|'.join(Phase)})(?:/([2-9]|[1-9][0-9]{{1,5}}))?"
)


@dataclass(frozen=True, slots=True)
class Case:
    """A workload x device x variant. Its id is a content hash, the same in every sweep."""

    workload: str
    device: str
    variant: Variant

    @property
    def id(self) -> str:
        return content_hash({"workload": self.workload, "device": self.device, "variant": str(self.variant)})


class AttemptKind(StrEnum):
    """Why a case was executed this time."""

    RECORD = "record"
    """The one that counts."""
    ALONE = "alone"
    """Run by itself after it failed in company; replaces the voided record."""
    RETRY = "retry"
    """A further look that can only label flakiness."""
    PROBE = "probe"
    """After a crash, with the crashing operator forced to the CPU: adds blockers, never passes."""
    AUDIT = "audit"
    """An inherited entry executed after all, to measure how far inheritance can be trusted."""
    CONTROL = "control"
    """A planted fault or good twin with a known answer."""
    REUSED = "reused"
    """Not executed: the record of an earlier sweep, whose verdict still holds. It cost this sweep nothing."""

    @property
    def counts(self) -> bool:
        """May this attempt's results decide a rung?"""
        return self in (AttemptKind.RECORD, AttemptKind.ALONE, AttemptKind.REUSED)
