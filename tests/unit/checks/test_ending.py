"""How a run ended, out of what the supervisor and the child itself say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from neuronqa.checks import compilation, load, run
from neuronqa.checks.ending import Manner, ending
from neuronqa.domain.observation import Exit, Failure, GraphUse, Observation, Progress
from neuronqa.domain.outcome import Kind
from tests.unit.checks.made import COMPILE, DONE, EAGER, device, right, seen

WHOLE = device(right(1))
GRAPH = GraphUse(graphs=1, ops=(12,), backend_calls=1, executions=8)


def died(progress: Progress, **how: Any) -> Exit:
    return replace(DONE, done=False, progress=progress, **how)


def raised(progress: Progress, error: str, message: str = "", **more: str) -> Observation:
    failure = Failure(progress=progress, error=error, message=message, **more)
    return replace(WHOLE, reached=progress, failure=failure)


F, B, L, C = Progress.FORWARD, Progress.BACKWARD, Progress.LOAD, Progress.COMPILE

EAGER_TABLE = [
    ("finished", WHOLE, DONE, "load:pass", "run:pass"),
    ("segfault", None, died(F, signal="SIGSEGV", last_op="aten::mm"), "load:pass", "run:crash(SIGSEGV aten::mm)"),
    ("abort in load", None, died(L, signal="SIGABRT"), "load:crash(SIGABRT)", "not-run:blocked(load)"),
    ("left with code 0", None, died(B, code=0), "load:pass", "run:exit(exit 0)"),
    ("left with code 3", None, died(F, code=3), "load:pass", "run:exit(exit 3)"),
    ("called sys.exit", raised(F, "SystemExit", "7"), DONE, "load:pass", "run:exit(exit 7)"),
    ("deadline", None, died(F, timed_out=True, signal="SIGKILL"), "load:pass", "run:timeout(forward)"),
    ("woken by the stack dump", WHOLE, replace(DONE, timed_out=True, progress=F), "load:pass", "run:timeout(forward)"),
    ("killed for memory", None, died(B, memory_exceeded=True, signal="SIGKILL"), "load:pass", "run:oom"),
    (
        "allocation refused",
        raised(F, "RuntimeError", "[enforce] can't allocate memory: 8 GB"),
        DONE,
        "load:pass",
        "run:oom",
    ),
    ("device out of memory", raised(F, "OutOfMemoryError"), DONE, "load:pass", "run:oom"),
    ("model raised", raised(F, "ValueError", "no"), DONE, "load:pass", "run:error(ValueError)"),
    (
        "no kernel",
        raised(B, "NotImplementedError", op="aten::cumsum"),
        DONE,
        "load:pass",
        "run:unsupported-op(aten::cumsum)",
    ),
    ("runtime error", raised(F, "RuntimeError", code="NRT 1003"), DONE, "load:pass", "run:device-error(NRT 1003)"),
    ("move refused", raised(L, "TypeError", "float64"), DONE, "load:error(TypeError)", "not-run:blocked(load)"),
    ("load too slow", None, died(L, timed_out=True), "load:timeout(load)", "not-run:blocked(load)"),
    ("died while reporting", None, died(Progress.REPORT, signal="SIGBUS"), "load:pass", "run:crash(SIGBUS)"),
    ("silent success", None, DONE, "load:pass", "infra:harness(no observation)"),
]


@pytest.mark.parametrize(
    ("name", "observation", "left", "loaded", "ran"), EAGER_TABLE, ids=[row[0] for row in EAGER_TABLE]
)
def test_an_eager_run_that_ends_so_is_judged_so(
    name: str, observation: Observation | None, left: Exit, loaded: str, ran: str
) -> None:
    attempt = seen(observation, left=left, variant=EAGER)
    assert str(load.judge(attempt).outcome) == loaded, name
    assert str(run.judge(attempt).outcome) == ran, name


BLOCKED = "not-run:blocked(compile)"
UNASKED, UNUSED = GraphUse(graphs=0, ops=()), GraphUse(graphs=0, ops=(), backend_calls=1)
FAILED, DYNAMO = "BackendCompilerFailed", "InternalTorchDynamoError"
NOT, CAUSE = "compile:not-compiled", "aten::index_put boolean indices"
COMPILE_TABLE = [
    ("compiled", WHOLE, DONE, "compile:pass", "run:pass"),
    ("backend refused", raised(F, FAILED, code="NCC_EBVF030"), DONE, "compile:refused(NCC_EBVF030)", BLOCKED),
    ("refused late", raised(B, "RuntimeError", code="NCC_EVRF035"), DONE, "compile:refused(NCC_EVRF035)", BLOCKED),
    ("compiler said why", raised(F, FAILED, detail=CAUSE), DONE, f"compile:refused({CAUSE})", BLOCKED),
    ("wrapped", raised(F, FAILED, inner="KeyError"), DONE, "compile:error(KeyError)", BLOCKED),
    ("backend broke", raised(F, FAILED), DONE, f"compile:error({FAILED})", BLOCKED),
    ("dynamo broke", raised(F, DYNAMO), DONE, f"compile:error({DYNAMO})", BLOCKED),
    ("compiler hung", None, died(C, timed_out=True), "compile:timeout(compile)", BLOCKED),
    ("compiler ate memory", None, died(C, memory_exceeded=True), "compile:oom", BLOCKED),
    ("compiler crashed", None, died(C, signal="SIGSEGV"), "compile:crash(SIGSEGV)", BLOCKED),
    ("compiled code crashed", None, died(F, signal="SIGSEGV"), "not-run:blocked(run)", "run:crash(SIGSEGV)"),
    ("load failed", None, died(L, signal="SIGSEGV"), "not-run:blocked(load)", "not-run:blocked(load)"),
    ("ran then raised", replace(raised(B, "ValueError"), graph=GRAPH), DONE, "compile:pass", "run:error(ValueError)"),
    ("backend never asked", replace(WHOLE, graph=UNASKED), DONE, f"{NOT}(backend not called)", "run:pass"),
    ("error swallowed", replace(WHOLE, graph=UNUSED), DONE, f"{NOT}(compiled code not run)", "run:pass"),
    ("device cannot say", replace(WHOLE, not_observable=("compile",)), DONE, "inconclusive:not-observable", "run:pass"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "observation", "left", "compiled", "ran"), COMPILE_TABLE, ids=[row[0] for row in COMPILE_TABLE]
)
def test_a_compiled_run_that_ends_so_is_judged_so(
    name: str, observation: Observation | None, left: Exit, compiled: str, ran: str
) -> None:
    attempt = seen(observation, left=left, variant=COMPILE)
    assert str(compilation.judge(attempt).outcome) == compiled, name
    assert str(run.judge(attempt).outcome) == ran, name


def test_evidence_of_a_crash_names_signal_operator_and_stack() -> None:
    left = died(F, signal="SIGSEGV", last_op="aten::mm", stack="frame 0", stderr_tail="boom")
    found = run.judge(seen(None, left=left))
    assert found.outcome.kind is Kind.RUN_CRASH
    assert found.evidence["words"] == "died of SIGSEGV in forward, running aten::mm"
    assert (found.evidence["op"], found.evidence["stack"], found.evidence["stderr"]) == ("aten::mm", "frame 0", "boom")


def test_every_manner_of_ending_can_be_told_from_the_others() -> None:
    manners = {ending(row[1], row[2]).manner for row in (*EAGER_TABLE, *COMPILE_TABLE)}
    assert manners == set(Manner)
