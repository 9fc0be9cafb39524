"""Load, compile, run: did the device do it at all, and if not, where and how did it stop?"""

from __future__ import annotations

from typing import Any

from neuronqa.checks.ending import Ending, Manner, compile_kind, failed_check, load_kind, run_kind
from neuronqa.checks.finding import blocked, finding, unobservable
from neuronqa.domain.case import Mode, Variant
from neuronqa.domain.finding import Finding
from neuronqa.domain.observation import Exit, GraphUse, Observation
from neuronqa.domain.outcome import Check, Kind


def stopped_by(end: Ending, variant: Variant) -> Check | None:
    """The check an unfinished run speaks against; None for a finished one."""
    return None if end.finished else failed_check(end, compiled=variant.mode is Mode.COMPILE)


def load(end: Ending, left: Exit, variant: Variant) -> Finding:
    """Did the build load and the model reach the device?"""
    if stopped_by(end, variant) is Check.LOAD:
        return _ended(Check.LOAD, load_kind(end), end, left)
    return finding(Check.LOAD, Kind.LOAD_PASS, "device loaded, model and inputs moved")


def run(end: Ending, left: Exit, variant: Variant, observation: Observation | None) -> Finding:
    """Did forward, backward and every optimizer step finish?"""
    stopped = stopped_by(end, variant)
    if stopped is Check.RUN:
        return _ended(Check.RUN, run_kind(end), end, left)
    if stopped is not None:
        return blocked(Check.RUN, stopped)
    steps = observation.steps if observation else 0
    return finding(Check.RUN, Kind.RUN_PASS, f"ran to the end, {steps} optimizer steps", steps=steps)


def compilation(end: Ending, left: Exit, variant: Variant, observation: Observation | None) -> Finding:
    """Did the compiler accept every graph, and is there proof that its code ran?"""
    stopped = stopped_by(end, variant)
    if stopped is Check.LOAD:
        return blocked(Check.COMPILE, Check.LOAD)
    if stopped is Check.COMPILE:
        return _ended(Check.COMPILE, compile_kind(end), end, left)
    if observation is not None and "compile" in observation.not_observable:
        return unobservable(Check.COMPILE, "the device cannot say whether compiled code ran")
    graph = observation.graph if observation else None
    proven = graph is not None and graph.backend_calls > 0 and graph.executions > 0
    if stopped is Check.RUN and not proven:
        return blocked(Check.COMPILE, Check.RUN)
    if graph is None or not proven:
        return _not_compiled(graph)
    return finding(
        Check.COMPILE,
        Kind.COMPILE_PASS,
        f"{graph.graphs} graphs compiled, compiled code ran {graph.executions} times",
        measure=graph.modelled_compile_s or graph.compile_s,
        **_facts(graph),
    )


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


def _ended(check: Check, kind: Kind, end: Ending, left: Exit) -> Finding:
    failure = end.failure
    return finding(
        check,
        kind,
        _words(end, left),
        detail=f"{end.detail} {left.last_op}".strip() if end.manner is Manner.SIGNAL else end.detail,
        progress=end.progress,
        error=failure.error if failure else "",
        message=failure.message if failure else "",
        traceback=failure.traceback if failure else "",
        code=failure.code if failure else "",
        op=(failure.op if failure else "") or left.last_op,
        signal=left.signal,
        exit_code=left.code,
        stack=left.stack,
        stderr=left.stderr_tail,
        peak_rss=left.peak_rss,
        wall_s=left.wall_s,
    )


def _words(end: Ending, left: Exit) -> str:
    where = f"in {end.progress.value}" + (f", running {left.last_op}" if left.last_op else "")
    match end.manner:
        case Manner.TIMEOUT:
            return f"killed at its deadline {where}"
        case Manner.MEMORY:
            return f"ran out of memory {where}"
        case Manner.SIGNAL:
            return f"died of {end.detail} {where}"
        case Manner.EXIT:
            return f"the process left without a word ({end.detail}) {where}"
        case Manner.UNTOLD:
            return "the child said it was done but left no observation"
        case Manner.ERROR if end.failure is not None:
            first = end.failure.message.strip().splitlines()
            return f"raised {end.failure.error} {where}: {first[0][:300] if first else ''}"
        case _:
            return f"ended {where}"
