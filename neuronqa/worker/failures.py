"""Exceptions of a model or a device as data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from traceback import StackSummary, TracebackException
from typing import Final

import neuronqa
from neuronqa.domain.observation import Failure, Progress
from neuronqa.workload.runnable import BuildFailure

MESSAGE_LIMIT: Final = 4000
TRACEBACK_LIMIT: Final = 16000
_FRAMES: Final = 100
_NO_KERNEL: Final = (
    re.compile(r"Could not run '(aten::[\w.]+|[\w]+::[\w.]+)' with arguments from the"),
    re.compile(r"The operator '([\w]+::[\w.]+)' is not currently (?:implemented|supported)"),
    re.compile(r"Operation (\S+) is not implemented for Neuron"),
)


def describe(
    error: BaseException,
    progress: Progress,
    *,
    code: Callable[[BaseException], str] | None = None,
    kind: str = "",
    detail: str = "",
) -> Failure:
    """Turn an exception into a :class:`Failure`; `code` reads a device's own error code from it."""
    chain = list(_chain(error))
    message = _text(chain[-1])
    return Failure(
        progress=progress,
        error=type(error).__name__,
        inner=type(chain[-1]).__name__ if len(chain) > 1 else "",
        message=message[:MESSAGE_LIMIT],
        traceback=own_traceback(error)[-TRACEBACK_LIMIT:],
        code=code(error) if code else "",
        op=unsupported_operator(message),
        kind=kind,
        detail=detail or _cause(chain),
    )


_OURS: Final = tuple(str(Path(neuronqa.__file__).parent / name) for name in ("worker", "workload"))


def own_traceback(error: BaseException) -> str:
    """The traceback of a model's own code, without the frames of the harness that called it."""
    told = error.__cause__ if isinstance(error, BuildFailure) and error.__cause__ is not None else error
    whole = TracebackException.from_exception(told, limit=-_FRAMES, compact=True)
    _drop_ours(whole)
    return "".join(whole.format())


def _drop_ours(one: TracebackException | None) -> None:
    if one is None:
        return
    one.stack = StackSummary.from_list([frame for frame in one.stack if not frame.filename.startswith(_OURS)])
    _drop_ours(one.__cause__)
    _drop_ours(one.__context__)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """`error` and what it wraps: dynamo keeps what a backend raised in `inner_exception`."""
    seen: BaseException | None = error
    known: set[int] = set()
    while seen is not None and id(seen) not in known:
        yield seen
        known.add(id(seen))
        seen = getattr(seen, "inner_exception", None) or seen.__cause__


def _cause(chain: list[BaseException]) -> str:
    """What the device itself calls the cause: an attribute `cause` of its exceptions."""
    told = (getattr(error, "cause", "") for error in chain)
    return next((text for text in told if isinstance(text, str) and text), "")


def unsupported_operator(message: str) -> str:
    """The operator torch or the device says it has no kernel for, or an empty string."""
    for pattern in _NO_KERNEL:
        found = pattern.search(message)
        if found:
            name = found.group(1)
            return name if "::" in name else f"aten::{name}"
    return ""


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:  # noqa: BLE001 - an exception's own __str__ is the model's code
        return f"<{type(error).__name__} whose text raised {type(broken).__name__}>"
