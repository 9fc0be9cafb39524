"""Did the compiler accept every graph, and is there proof that its code ran?"""

from __future__ import annotations

from typing import Any, Final

from neuronqa.checks.ended import ended
from neuronqa.checks.ending import compile_kind
from neuronqa.checks.finding import blocked, finding, unobservable
from neuronqa.checks.seen import Seen
from neuronqa.domain.finding import Finding
from neuronqa.domain.observation import GraphUse
from neuronqa.domain.outcome import Check, Kind

ANSWERS: Final = Check.COMPILE


def judge(seen: Seen) -> Finding:
    if seen.stopped is Check.LOAD:
        return blocked(Check.COMPILE, Check.LOAD)
    if seen.stopped is Check.COMPILE:
        return ended(Check.COMPILE, compile_kind(seen.end), seen.end, seen.left)
    if seen.device is not None and Check.COMPILE.value in seen.device.not_observable:
        return unobservable(Check.COMPILE, "the device cannot say whether compiled code ran")
    graph = seen.device.graph if seen.device else None
    proven = graph is not None and graph.backend_calls > 0 and graph.executions > 0
    if seen.stopped is Check.RUN and not proven:
        return blocked(Check.COMPILE, Check.RUN)
    if graph is None or not proven:
        return _not_compiled(graph)
    return finding(
        Check.COMPILE,
        Kind.COMPILE_PASS,
        f"{graph.graphs} graphs compiled, compiled code ran {graph.executions} times",
        measure=graph.modelled_compile_s or graph.compile_s,
        first_step_over_steady=_first_over_steady(seen),
        **_facts(graph),
    )


def _first_over_steady(seen: Seen) -> float | None:
    """How much longer the step that compiled took than one that did not."""
    seconds = seen.device.seconds if seen.device else {}
    steady = seconds.get("steady_step", 0.0)
    return seconds["first_step"] / steady if steady else None


def _not_compiled(graph: GraphUse | None) -> Finding:
    """The model ran, but not as compiled code: dynamo skipped it, or swallowed the compiler's error."""
    if graph is None or graph.backend_calls == 0:
        detail, words = "backend not called", "the model ran, but the compile backend was never asked for a graph"
    else:
        detail, words = "compiled code not run", "the backend was asked, but no code of its making ran"
    facts = _facts(graph) if graph else {}
    return finding(Check.COMPILE, Kind.COMPILE_NOT_COMPILED, words, detail=detail, **facts)


def _facts(graph: GraphUse) -> dict[str, Any]:
    return {
        "graphs": graph.graphs,
        "ops": graph.ops,
        "backend_calls": graph.backend_calls,
        "executions": graph.executions,
        "compile_s": graph.compile_s,
        "modelled_compile_s": graph.modelled_compile_s,
        "cache_hits": graph.cache_hits,
        "cache_misses": graph.cache_misses,
    }
