"""The ends of a case's ranks, joined into the end of the case: the rank that ended it speaks for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from neuronqa.domain.observation import Exit, Progress

MOST: Final = 16
"""Ranks of one case: they share one user's limit on processes and threads."""
_TAIL: Final = 2000
"""Characters kept of what a rank printed that is not to blame."""
_STEPS: Final = tuple(Progress)
_WAITING: Final = "/torch/distributed/"
"""In the stack of a rank that waits for the others in a collective."""


def joined(ends: Sequence[Exit], first: int | None) -> Exit:
    """The end of a case, `ends` by rank; `first` is the rank that went wrong first, None if none did.

    Where ranks hang together, the one that does not wait in a collective keeps the others waiting.
    """
    if len(ends) == 1:
        return ends[0]
    named = None if first is None else _hung(ends, first)
    spokesman = ends[named or 0]
    return replace(
        spokesman,
        done=all(one.done for one in ends),
        progress=spokesman.progress if named is not None else min((e.progress for e in ends), key=_STEPS.index),
        stderr_tail=_logs(ends, named),
        peak_rss=sum(one.peak_rss for one in ends),
        cpu_s=sum(one.cpu_s for one in ends),
        wall_s=max(one.wall_s for one in ends),
        rank=named,
    )


def _hung(ends: Sequence[Exit], first: int) -> int:
    if not ends[first].timed_out:
        return first
    late = [rank for rank, one in enumerate(ends) if one.timed_out]
    return next((rank for rank in late if _WAITING not in ends[rank].stack), late[0])


def _logs(ends: Sequence[Exit], named: int | None) -> str:
    """What each rank printed, apart; the one that ended the case first, and in full."""
    order = sorted(range(len(ends)), key=lambda rank: rank != named)
    parts = []
    for rank in order:
        said = ends[rank].stderr_tail.rstrip("\n")
        said = said if rank == named else said[-_TAIL:]
        if said:
            parts.append(f"[rank {rank}]\n{said}")
    return "\n".join(parts)
