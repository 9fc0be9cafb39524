"""Which verdicts of an earlier sweep still hold: decided from what a verdict depends on, never from what it says."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from neuronqa.domain.build import BuildVector
from neuronqa.domain.case import Mode, Variant
from neuronqa.domain.outcome import Kind, rules

EVERYTHING: Final = "*"
"""In place of an operator in a build vector: what stands under it may reach every operator."""


class Spared(StrEnum):
    """Why a case that was executed before is, or is not, executed again."""

    UNCHANGED = "nothing it depends on has changed"
    OUT_OF_REACH = "what has changed is not used by it"
    DRAWN = "drawn to be executed anyway"
    DEVICE = "the device has changed"
    COMPILER = "the compiler has changed"
    KERNEL = "a kernel it executes has changed"
    OPERATORS_UNKNOWN = "a kernel has changed, and not all its operators are known"
    UNSETTLED = "timeouts, memory limits and open questions are never carried over"

    @property
    def holds(self) -> bool:
        """Is the verdict carried over?"""
        return self in (Spared.UNCHANGED, Spared.OUT_OF_REACH)


@dataclass(frozen=True, slots=True)
class Change:
    """What differs between two builds, by whom it can reach."""

    everything: bool = False
    compiler: bool = False
    operators: frozenset[str] = frozenset()

    @property
    def nothing(self) -> bool:
        return self == Change()


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """An attempt of an earlier sweep, as far as carrying its verdict over depends on it."""

    variant: Variant
    kinds: AbstractSet[Kind]
    operators: AbstractSet[str] = frozenset()
    """What it executed on the device; needed only where a kernel has changed."""
    complete: bool = False
    """Are these all that it can execute?"""


def change(then: BuildVector, now: BuildVector) -> Change:
    """Compare two builds part by part. A profile decides in eager mode as well what falls back: it reaches everything.

    Kernels count as changed where one was added or removed, too.
    """
    fixed = [(v.adapter, v.profile_sha256, v.shim, dict(v.versions)) for v in (then, now)]
    changed = frozenset(op for op, _ in set(then.kernels.items()) ^ set(now.kernels.items()))
    return Change(
        everything=fixed[0] != fixed[1] or EVERYTHING in changed,
        compiler=then.passes != now.passes,
        operators=changed,
    )


def spared(past: Past, changed: Change) -> Spared:
    """Does the verdict still hold under a build that differs by `changed`?"""
    if changed.everything:
        return Spared.DEVICE
    if changed.compiler and past.variant.mode is Mode.COMPILE:
        return Spared.COMPILER
    if any(not may_hold(kind) for kind in past.kinds):
        return Spared.UNSETTLED
    if changed.operators:
        if not past.complete or not _finished(past):
            return Spared.OPERATORS_UNKNOWN
        if past.operators & changed.operators:
            return Spared.KERNEL
    return Spared.UNCHANGED if changed.nothing else Spared.OUT_OF_REACH


def may_hold(kind: Kind) -> bool:
    """May an outcome of this kind be carried over? What is blocked follows from what blocks it."""
    return rules(kind).reusable or kind is Kind.NOT_RUN_BLOCKED


def _finished(past: Past) -> bool:
    """Did it get through all it has to execute? One that stopped may have stopped before the changed kernel."""
    wanted = {Kind.RUN_PASS, Kind.COMPILE_PASS} if past.variant.mode is Mode.COMPILE else {Kind.RUN_PASS}
    return wanted <= past.kinds
