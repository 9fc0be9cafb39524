"""Was the model captured as one graph, and did it stay captured?"""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from neuronqa.checks import compilation
from neuronqa.checks.finding import blocked, finding, unobservable
from neuronqa.checks.pattern import masked
from neuronqa.checks.seen import Seen
from neuronqa.domain.finding import Finding
from neuronqa.domain.observation import GraphBreak, GraphUse
from neuronqa.domain.outcome import Check, Kind, Outcome

ANSWERS: Final = Check.GRAPH


def judge(seen: Seen) -> Finding:
    """A break that was seen counts even if the run stopped later; a pass needs a finished, compiled run."""
    observation, stopped = seen.device, seen.stopped
    if observation is None or (observation.graph is None and stopped is not None):
        return blocked(Check.GRAPH, stopped or Check.RUN)
    if Check.GRAPH.value in observation.not_observable:
        return unobservable(Check.GRAPH, "the device cannot say where its graphs end")
    graph = observation.graph
    if graph is None:
        return blocked(Check.GRAPH, Check.COMPILE)
    breaks = sum(one.count for one in graph.breaks)
    if breaks > seen.thresholds.graph_breaks:
        return _broken(graph, breaks)
    if graph.recompiles:
        return _recompiled(graph)
    compiled = compilation.judge(seen).outcome.kind is Kind.COMPILE_PASS
    if stopped is not None or not compiled:
        return blocked(Check.GRAPH, stopped or Check.COMPILE)
    return finding(
        Check.GRAPH, Kind.GRAPH_PASS, f"{graph.graphs} graphs, no break beyond {seen.thresholds.graph_breaks}"
    )


def _broken(graph: GraphUse, breaks: int) -> Finding:
    first = graph.breaks[0]
    where = f"{breaks} graph breaks at {len(graph.breaks)} places, first {first.registry_id} at {first.frame}"
    return finding(
        Check.GRAPH,
        Kind.GRAPH_BREAK,
        f"{where}: {first.reason}",
        detail=_pattern(first),
        others=[Outcome.of(Kind.GRAPH_BREAK, _pattern(one)) for one in graph.breaks],
        measure=float(breaks),
        graphs=graph.graphs,
        breaks=[asdict(one) for one in graph.breaks],
        recompiles=graph.recompiles,
    )


def _pattern(one: GraphBreak) -> str:
    """`GB0170 Data-dependent branching`"""
    return f"{one.registry_id} {one.reason.partition(':')[0]}".strip()


def _recompiled(graph: GraphUse) -> Finding:
    return finding(
        Check.GRAPH,
        Kind.GRAPH_RECOMPILE,
        f"recompiled {len(graph.recompiles)} times; the first guard to fail: {graph.recompiles[0]}",
        detail=masked(graph.recompiles[0]),
        others=[Outcome.of(Kind.GRAPH_RECOMPILE, masked(guard)) for guard in graph.recompiles],
        measure=float(len(graph.recompiles)),
        graphs=graph.graphs,
        recompiles=graph.recompiles,
    )
