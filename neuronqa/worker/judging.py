"""The judge as an actor holds it: a process of its own that reads what children left, and is replaced when it fails."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from neuronqa.domain.case import Variant
from neuronqa.domain.finding import Finding
from neuronqa.domain.identity import canonical_json, relaxed
from neuronqa.domain.observation import Exit
from neuronqa.domain.outcome import Check, Outcome
from neuronqa.domain.policy import Thresholds
from neuronqa.worker import frames, zygote
from neuronqa.worker.handle import import_path

COMMAND: Final = ("-P", "-m", "neuronqa.worker.judge")
PATIENCE_S: Final = 120.0
_REPLY_LIMIT: Final = 64 << 20
_SAID_LIMIT: Final = 4096


class JudgeFailed(Exception):
    """It died, hung, or could not read what it was given. Nothing is known of the case."""


class _Died(Exception):
    pass


class Judge:
    """Asks one question at a time. A judge that dies of a question is asked it once more, anew: it may be innocent."""

    def __init__(self, command: Sequence[str] = COMMAND, patience_s: float = PATIENCE_S) -> None:
        self._command = (sys.executable, *command)
        self._patience_s = patience_s
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = frames.memory_file("judge-stderr", b"")

    def start(self) -> None:
        """Start it ahead of the first question, so that it imports while others work."""
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**os.environ, **zygote.ENVIRONMENT, "PYTHONPATH": import_path()},
                bufsize=0,
                start_new_session=True,
            )

    def reference(self, folder: Path, left: Exit) -> tuple[Finding, ...]:
        """Raises JudgeFailed."""
        return self._ask({"role": "reference", "reference": str(folder), "exit": asdict(left)})

    def device(
        self,
        reference: Path,
        folder: Path,
        left: Exit,
        variant: Variant,
        thresholds: Thresholds,
        search: Path | None = None,
        second: Path | None = None,
    ) -> tuple[Finding, ...]:
        """Raises JudgeFailed."""
        return self._ask(
            {
                "role": "device",
                "reference": str(reference),
                "device": str(folder),
                "exit": asdict(left),
                "variant": str(variant),
                "thresholds": asdict(thresholds),
                "search": str(search) if search else None,
                "second": str(second) if second else None,
            }
        )

    def close(self) -> None:
        self._drop()
        os.close(self._errors)

    def _ask(self, question: Mapping[str, Any]) -> tuple[Finding, ...]:
        line = canonical_json(question).encode("ascii") + b"\n"
        for _ in range(2):
            try:
                return _findings(self._exchange(line))
            except _Died:
                self._drop()
        said = frames.content(self._errors, _SAID_LIMIT).decode("utf-8", "replace").strip()
        raise JudgeFailed(f"the judge died twice of one question: {said[-300:]}")

    def _exchange(self, line: bytes) -> bytes:
        self.start()
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
        except BrokenPipeError as error:
            raise _Died from error
        return self._reply()

    def _reply(self) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        until = time.monotonic() + self._patience_s
        reply = b""
        while not reply.endswith(b"\n"):
            if not select.select([pipe], (), (), max(0.0, until - time.monotonic()))[0] or len(reply) > _REPLY_LIMIT:
                self._drop()
                raise JudgeFailed(f"the judge did not answer within {self._patience_s:.0f} s")
            data = os.read(pipe, 1 << 16)
            if not data:
                raise _Died
            reply += data
        return reply

    def _drop(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process = None


def _findings(reply: bytes) -> tuple[Finding, ...]:
    try:
        answer = relaxed(json.loads(reply))
        if "error" in answer:
            raise JudgeFailed(f"the judge could not tell: {answer['error']}")
        return tuple(_finding(plain) for plain in answer["findings"])
    except (ValueError, TypeError, KeyError) as error:
        raise JudgeFailed(f"the judge's answer cannot be read: {error}") from error


def _finding(plain: Mapping[str, Any]) -> Finding:
    return Finding(
        check=Check(plain["check"]),
        outcome=Outcome.parse(plain["outcome"]),
        others=tuple(map(Outcome.parse, plain.get("others", ()))),
        measure=plain["measure"],
        evidence=plain["evidence"],
    )
