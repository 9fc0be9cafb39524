"""How long the compiler takes, as a model: three constants, and the published runs they were fitted on.

All of it is data, in `catalogs/devices/hardware/compile.toml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from neuronqa import bundled


@dataclass(frozen=True, slots=True)
class Work:
    """What the compiler is given before a first step can end."""

    graphs: int
    """Compiled one by one: an operator is a graph of its own in eager mode."""
    operators: int
    instructions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """Seconds."""

    per_graph: float
    per_operator: float
    per_instruction: float

    def seconds(self, work: Work) -> float:
        """How long `work` would take to compile."""
        operators = self.per_operator * work.operators
        return self.per_graph * work.graphs + operators + self.per_instruction * work.instructions


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRun:
    """A run somebody timed, and the model it was."""

    name: str
    profile: str
    first_step_s: float
    times_a_step: float
    """First step over the average step; 0 where it was not told."""
    mode: str
    distinct_blocks: int
    """Blocks that are compiled: one where all have one shape, all where each has its own."""
    layers: int
    tokens: int
    config: Mapping[str, Any]
    work: Work
    block: Work
    """The part of `work` that one block is."""
    source: str

    @property
    def step_s(self) -> float:
        """The average step, seconds; 0 where it was not told."""
        return self.first_step_s / self.times_a_step if self.times_a_step else 0.0

    def estimate(self, known: Constants) -> float:
        """The first step's modelled seconds: compilation and one step."""
        return known.seconds(self.work) + self.step_s

    def after_edit(self, known: Constants) -> float:
        """The same after an edit of one layer, everything else being in the cache."""
        return known.seconds(self.block) + self.step_s


def compile_seconds(operators: int, instructions: int) -> float:
    """The modelled time to compile one graph of so many operators and instructions."""
    return constants().seconds(Work(1, operators, instructions))


@cache
def constants() -> Constants:
    """The fitted constants."""
    return Constants(**_data()["constants"])


@cache
def published() -> tuple[PublishedRun, ...]:
    """The runs the constants were fitted on."""
    return tuple(
        PublishedRun(**{**run, "work": Work(**run["work"]), "block": Work(**run["block"])}) for run in _data()["run"]
    )


@cache
def _data() -> dict[str, Any]:
    path = bundled.folder("catalogs") / "devices" / "hardware" / "compile.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))
