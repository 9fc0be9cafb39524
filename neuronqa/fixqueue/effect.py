"""What a submission did to a case: pure comparison of a run without it and a run with it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from neuronqa.domain.finding import Finding
from neuronqa.domain.observation import Exit, GraphUse
from neuronqa.domain.outcome import Check, Kind, Outcome, Stage, Standing
from neuronqa.fixqueue.reason import Reason

SLOWER: Final = 3.0
"""Times the processor time of the case without the submission, beyond :data:`SPARE_S`."""
SPARE_S: Final = 2.0

_BY_KIND: Final = {
    Kind.RUN_TIMEOUT: Reason.HANGS,
    Kind.COMPILE_TIMEOUT: Reason.HANGS,
    Kind.RUN_OOM: Reason.OUT_OF_MEMORY,
    Kind.COMPILE_OOM: Reason.OUT_OF_MEMORY,
    Kind.RUN_CRASH: Reason.CRASHES,
    Kind.RUN_EXIT: Reason.CRASHES,
    Kind.RUN_ERROR: Reason.RAISES,
    Kind.RUN_UNSUPPORTED_OP: Reason.RAISES,
    Kind.RUN_DEVICE_ERROR: Reason.RAISES,
    Kind.GRAPH_BREAK: Reason.GRAPH_BREAKS,
    Kind.GRAPH_RECOMPILE: Reason.RECOMPILES,
}


@dataclass(frozen=True, kw_only=True)
class Ran:
    """One run of a case."""

    findings: tuple[Finding, ...]
    exit: Exit
    graph: GraphUse | None = None
    lost: str = ""
    """Why nothing is known of it; empty if something is."""

    @property
    def failing(self) -> dict[str, Outcome]:
        """Every failing outcome, by its text."""
        outcomes = (one for finding in self.findings for one in (finding.outcome, *finding.others))
        return {str(one): one for one in outcomes if one.standing is Standing.FAIL}

    @property
    def unanswered(self) -> frozenset[Check]:
        return frozenset(one.check for one in self.findings if one.outcome.standing is Standing.NOT_RUN)

    @property
    def harness(self) -> str:
        """Our own fault, in words, or an empty text."""
        ours = [one for one in self.findings if one.outcome.kind in (Kind.INFRA_HARNESS, Kind.INFRA_LOST)]
        return self.lost or (str(ours[0].outcome) if ours else "")


def shown(ran: Ran, outcomes: Sequence[str]) -> frozenset[str]:
    """The failing outcomes of a run that the item is about: those it names, else those of a kind it names; without such
    outcomes all of them.
    """
    failing = ran.failing
    if not outcomes:
        return frozenset(failing)
    kinds = {_kind(text) for text in outcomes}
    named = frozenset(text for text in failing if text in outcomes)
    return named or frozenset(text for text, one in failing.items() if one.kind in kinds)


def effect(before: Ran, after: Ran, gone: Collection[str] = ()) -> Reason | None:
    """What is wrong with a case now: what should be gone is not, or what was right is not. None if neither.

    `gone`: the failing outcomes of `before` that should not be there any more; none for a case that passed.
    """
    failing = after.failing
    if any(text in failing for text in gone):
        return _worst(failing, failing, Reason.STILL_FAILS)
    fresh = {text: one for text, one in failing.items() if text not in before.failing}
    if fresh:
        return _worst(fresh, failing, Reason.STILL_FAILS if gone else Reason.BREAKS_ANOTHER)
    if after.unanswered - before.unanswered:
        return Reason.SKIPS
    if _count(after, "breaks") > _count(before, "breaks"):
        return Reason.GRAPH_BREAKS
    if _count(after, "recompiles") > _count(before, "recompiles"):
        return Reason.RECOMPILES
    if after.exit.cpu_s > SLOWER * before.exit.cpu_s + SPARE_S:
        return Reason.TOO_SLOW
    return None


def _worst(fresh: dict[str, Outcome], failing: dict[str, Outcome], otherwise: Reason) -> Reason:
    for one in (*fresh.values(), *failing.values()):
        if one.kind in _BY_KIND:
            return _BY_KIND[one.kind]
    stages = {one.kind.stage for one in fresh.values()}
    if stages == {Stage.FALLBACK}:
        return Reason.FALLS_BACK
    if Stage.PARITY in stages or Stage.TRAIN in stages:
        return Reason.VALUES if otherwise is Reason.STILL_FAILS and fresh is not failing else otherwise
    return Reason.SKIPS if stages == {Stage.INCONCLUSIVE} else otherwise


def _kind(text: str) -> Kind | None:
    try:
        return Outcome.parse(text).kind
    except ValueError:
        return None


def _count(ran: Ran, what: str) -> int:
    return len(getattr(ran.graph, what)) if ran.graph is not None else 0
