"""All that a check of a device may look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from neuronqa.checks import steps, tensors
from neuronqa.checks.ending import Ending, ending, failed_check
from neuronqa.checks.tensors import Arrays, Yardstick
from neuronqa.domain.case import Dtype, Mode, Variant
from neuronqa.domain.observation import Exit, Observation
from neuronqa.domain.outcome import Check
from neuronqa.domain.policy import Thresholds


@dataclass(frozen=True, kw_only=True)
class Reference:
    """What the reference child left, measured once."""

    observation: Observation
    arrays: Arrays
    weights: Arrays
    """`param/NAME` before the first step."""
    yardsticks: Mapping[str, Yardstick]

    @classmethod
    def of(
        cls, observation: Observation, arrays: Arrays, weights: Arrays, dtype: Dtype, thresholds: Thresholds
    ) -> Reference:
        measured = tensors.yardsticks(arrays, dtype, thresholds)
        names = observation.parameter_names
        measured |= steps.yardsticks(names, arrays, weights, measured, dtype, thresholds)
        return cls(observation=observation, arrays=arrays, weights=weights, yardsticks=measured)


@dataclass(frozen=True, kw_only=True)
class Second:
    """What another device made of the same start."""

    device: str
    arrays: Arrays


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One attempt as the judge sees it: a fit reference, and what the device child and its supervisor left."""

    reference: Reference
    device: Observation | None
    """None where the child left nothing."""
    arrays: Arrays
    left: Exit
    variant: Variant
    thresholds: Thresholds
    search: Observation | None = None
    """What a search for the operator to blame found, where one was made."""
    search_arrays: Arrays = field(default_factory=dict)
    """What the same step gave once more, while it was searched."""
    second: Second | None = None
    """Another device to compare with, where one was recorded."""

    @cached_property
    def end(self) -> Ending:
        return ending(self.device, self.left)

    @cached_property
    def stopped(self) -> Check | None:
        """Which of load, compile and run an unfinished attempt speaks against; None for a finished one."""
        return None if self.end.finished else failed_check(self.end, compiled=self.variant.mode is Mode.COMPILE)
