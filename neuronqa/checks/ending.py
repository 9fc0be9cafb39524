"""How a child's run ended: one manner out of what its supervisor and the child itself say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

from neuronqa.domain.observation import Exit, Failure, Observation, Progress
from neuronqa.domain.outcome import Check, Kind


class Manner(StrEnum):
    """The ways a run can end."""

    DONE = "done"
    ERROR = "error"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    SIGNAL = "signal"
    EXIT = "exit"
    """The process left by itself before it was done, whatever its exit code."""
    UNTOLD = "untold"
    """It said it was done but left no observation: a fault of ours."""


@dataclass(frozen=True)
class Ending:
    """A manner, where it happened, and a short pattern that narrows it."""

    manner: Manner
    progress: Progress
    detail: str = ""
    failure: Failure | None = None

    @property
    def finished(self) -> bool:
        return self.manner is Manner.DONE


_MEMORY_ERRORS: Final = frozenset({"MemoryError", "OutOfMemoryError"})
_MEMORY_TEXT: Final = re.compile(r"can(?:'t|not) allocate memory|not enough memory|out of memory", re.IGNORECASE)


def ending(observation: Observation | None, left: Exit) -> Ending:
    """Decide how it ended. The supervisor's word comes first: a run that passed its deadline is a timeout, even if a
    signal woke it from the sleep it hung in and it then reported success."""
    if left.timed_out:
        return Ending(Manner.TIMEOUT, left.progress, left.progress.value)
    if left.memory_exceeded:
        return Ending(Manner.MEMORY, left.progress)
    if left.signal:
        return Ending(Manner.SIGNAL, left.progress, left.signal)
    if not left.done:
        return Ending(Manner.EXIT, left.progress, f"exit {left.code if left.code is not None else '?'}")
    if observation is None:
        return Ending(Manner.UNTOLD, left.progress, "no observation")
    if observation.failure is not None:
        return _raised(observation.failure)
    return Ending(Manner.DONE, Progress.DONE)


def _raised(failure: Failure) -> Ending:
    if failure.error in _MEMORY_ERRORS or _MEMORY_TEXT.search(failure.message):
        return Ending(Manner.MEMORY, failure.progress, failure.code, failure)
    if failure.error == "SystemExit":
        return Ending(Manner.EXIT, failure.progress, f"exit {failure.message or 0}", failure)
    return Ending(Manner.ERROR, failure.progress, _pattern(failure), failure)


def _pattern(failure: Failure) -> str:
    """The device's code and cause where it gave any, else the operator it lacks, else the exception's class and the
    operator that raised it."""
    if failure.code or failure.op:
        return f"{failure.code} {failure.op or failure.detail}".strip()
    return failure.detail or f"{failure.inner or failure.error} {failure.last_op}".strip()


_COMPILER_ERRORS: Final = frozenset(
    {
        "BackendCompilerFailed",
        "InductorError",
        "InternalTorchDynamoError",
        "TorchRuntimeError",
        "UncapturedHigherOrderOpError",
        "Unsupported",
        "UserError",
    }
)


def failed_check(end: Ending, *, compiled: bool) -> Check:
    """Which of load, compile and run a device's ending speaks against."""
    match end.progress:
        case Progress.STARTED | Progress.BUILD | Progress.INPUTS | Progress.REFERENCE | Progress.LOAD:
            return Check.LOAD
        case Progress.COMPILE:
            return Check.COMPILE
        case (
            Progress.FORWARD
            | Progress.BACKWARD
            | Progress.OPTIMIZER
            | Progress.TRAINING
            | Progress.REPORT
            | Progress.DONE
        ):
            return Check.COMPILE if compiled and _by_compiler(end.failure) else Check.RUN
        case _:
            assert_never(end.progress)


def _by_compiler(failure: Failure | None) -> bool:
    return failure is not None and (failure.error in _COMPILER_ERRORS or failure.code.startswith("NCC"))


def load_kind(end: Ending) -> Kind:
    match end.manner:
        case Manner.DONE:
            return Kind.LOAD_PASS
        case Manner.ERROR:
            return Kind.LOAD_ERROR
        case Manner.TIMEOUT:
            return Kind.LOAD_TIMEOUT
        case Manner.MEMORY:
            return Kind.LOAD_OOM
        case Manner.SIGNAL | Manner.EXIT:
            return Kind.LOAD_CRASH
        case Manner.UNTOLD:
            return Kind.INFRA_HARNESS
        case _:
            assert_never(end.manner)


def compile_kind(end: Ending) -> Kind:
    match end.manner:
        case Manner.DONE:
            return Kind.COMPILE_PASS
        case Manner.ERROR:
            refused = end.failure is not None and (end.failure.code.startswith("NCC") or end.failure.detail != "")
            return Kind.COMPILE_REFUSED if refused else Kind.COMPILE_ERROR
        case Manner.TIMEOUT:
            return Kind.COMPILE_TIMEOUT
        case Manner.MEMORY:
            return Kind.COMPILE_OOM
        case Manner.SIGNAL | Manner.EXIT:
            return Kind.COMPILE_CRASH
        case Manner.UNTOLD:
            return Kind.INFRA_HARNESS
        case _:
            assert_never(end.manner)


def run_kind(end: Ending) -> Kind:
    match end.manner:
        case Manner.DONE:
            return Kind.RUN_PASS
        case Manner.ERROR if end.failure is not None and end.failure.code:
            return Kind.RUN_DEVICE_ERROR
        case Manner.ERROR if end.failure is not None and end.failure.op:
            return Kind.RUN_UNSUPPORTED_OP
        case Manner.ERROR:
            return Kind.RUN_ERROR
        case Manner.TIMEOUT:
            return Kind.RUN_TIMEOUT
        case Manner.MEMORY:
            return Kind.RUN_OOM
        case Manner.SIGNAL:
            return Kind.RUN_CRASH
        case Manner.EXIT:
            return Kind.RUN_EXIT
        case Manner.UNTOLD:
            return Kind.INFRA_HARNESS
        case _:
            assert_never(end.manner)


def build_kind(end: Ending) -> Kind:
    match end.manner:
        case Manner.DONE:
            return Kind.BUILD_PASS
        case Manner.ERROR:
            return Kind.BUILD_ERROR
        case Manner.TIMEOUT:
            return Kind.BUILD_TIMEOUT
        case Manner.MEMORY:
            return Kind.BUILD_OOM
        case Manner.SIGNAL | Manner.EXIT:
            return Kind.BUILD_CRASH
        case Manner.UNTOLD:
            return Kind.INFRA_HARNESS
        case _:
            assert_never(end.manner)


def reference_kind(end: Ending) -> Kind:
    match end.manner:
        case Manner.DONE:
            return Kind.REFERENCE_PASS
        case Manner.ERROR:
            return Kind.REFERENCE_ERROR
        case Manner.TIMEOUT:
            return Kind.REFERENCE_TIMEOUT
        case Manner.MEMORY:
            return Kind.REFERENCE_OOM
        case Manner.SIGNAL | Manner.EXIT:
            return Kind.REFERENCE_CRASH
        case Manner.UNTOLD:
            return Kind.INFRA_HARNESS
        case _:
            assert_never(end.manner)
