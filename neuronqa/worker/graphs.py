"""What dynamo says about a compilation: breaks with their registry id, recompilations with the guard that failed."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any, Final

import torch
from torch._dynamo import utils
from torch._dynamo.callback import callback_handler
from torch._dynamo.exc import Unsupported
from torch._dynamo.symbolic_convert import InstructionTranslatorBase

from neuronqa.domain.observation import GraphBreak, Progress
from neuronqa.worker.training import Marks

REASON_LIMIT: Final = 500
_LINK: Final = re.compile(r"/gb/gb(\d+)\.html")


class GraphWatch:
    """Collects what dynamo tells while a context is open; starts from a clean dynamo.

    Dynamo keeps breaks it can resume from and frames it skips in different places, and the registry id in neither, so
    the one method that every resumable break passes (`log_graph_break`, torch 2.13) is listened to, and skipped frames
    are read from the compilation metrics.
    """

    def __init__(self) -> None:
        self._breaks: Counter[tuple[str, str, str]] = Counter()

    @contextmanager
    def watching(self, mark: Marks) -> Iterator[None]:
        torch._dynamo.reset()
        utils.clear_compilation_metrics()
        heard = InstructionTranslatorBase.log_graph_break

        @functools.wraps(heard)
        def listen(translator: Any, code_options: Any, reason: str, exc: Any) -> Any:
            if not exc.logged:
                self._note(exc, reason, code_options)
            return heard(translator, code_options, reason, exc)

        InstructionTranslatorBase.log_graph_break = listen  # type: ignore[assignment, method-assign]
        start = callback_handler.register_start_callback(lambda _: mark.aside(Progress.COMPILE))
        end = callback_handler.register_end_callback(lambda _: mark.back())
        try:
            yield
        finally:
            callback_handler.remove_start_callback(start)
            callback_handler.remove_end_callback(end)
            InstructionTranslatorBase.log_graph_break = heard  # type: ignore[method-assign]

    def breaks(self) -> tuple[GraphBreak, ...]:
        """Every break so far, the skipped frames included, by id, reason and user frame."""
        counts = self._breaks.copy()
        for metric in utils.get_compilation_metrics():
            if metric.fail_type in _SKIPPING:
                reason = metric.fail_reason or metric.fail_type
                place = frame(
                    metric.fail_user_frame_filename or metric.co_filename or "", metric.fail_user_frame_lineno
                )
                skipped = (registry_id(reason), headline(reason), f"{place} {metric.co_name or ''}".strip())
                counts[skipped] = max(1, counts[skipped])  # Most were heard already when they were raised.
        return tuple(
            GraphBreak(registry_id=number, reason=reason, frame=place, count=count)
            for (number, reason, place), count in counts.items()
        )

    def recompiles(self) -> tuple[str, ...]:
        """The guard that failed, once for each recompilation."""
        reasons = (metric.recompile_reason for metric in utils.get_compilation_metrics())
        return tuple(headline(_guard(reason)) for reason in reasons if reason)

    def _note(self, error: Any, reason: str, code_options: Any) -> None:
        text = error.msg if isinstance(error, Unsupported) else reason
        stack = getattr(error, "real_stack", None) or torch._guards.TracingContext.extract_stack()
        if stack:
            last = stack[-1]
            place = f"{frame(last.filename, last.lineno)} {last.name}"
        else:
            place = f"{frame(code_options['co_filename'], code_options['co_firstlineno'])} {code_options['co_name']}"
        self._breaks[registry_id(text), headline(text), place] += 1


_SKIPPING: Final = frozenset({"Unsupported", "UserError"})
"""Failures for which dynamo runs a frame uncompiled and says nothing; the compile check speaks of all others."""


def registry_id(text: str) -> str:
    """`GB0170` where dynamo's message links to its registry, else an empty string."""
    found = _LINK.search(text)
    return f"GB{found.group(1)}" if found else ""


def headline(text: str) -> str:
    """The break's type and its explanation in one line, without hints and the developer's context."""
    kept = re.split(r"\n\s*(?:Hint|Developer debug context):", text)[0]
    return " ".join(kept.replace("Explanation:", ":").replace(" :", ":").split())[:REASON_LIMIT]


def _guard(reason: str) -> str:
    """The guard out of `0/0: GUARD  # source line  # place`."""
    return (reason.partition(": ")[2] or reason).partition("  #")[0]


def frame(filename: str, line: int | None) -> str:
    """`transformers/models/gpt2/modeling_gpt2.py:123`: a path that is the same on every machine."""
    parts = PurePath(filename).parts
    for anchor in ("site-packages", "dist-packages"):
        if anchor in parts:
            parts = parts[len(parts) - parts[::-1].index(anchor) :]
            break
    else:
        parts = parts[-1:]
    return f"{'/'.join(parts)}:{line or 0}"


def compiled(module: Callable[..., Any], backend: str | Callable[..., Any]) -> Callable[..., Any]:
    """`module` compiled for static shapes, as accelerators with ahead-of-time compilers ask for."""
    return torch.compile(module, backend=backend, dynamic=False)
