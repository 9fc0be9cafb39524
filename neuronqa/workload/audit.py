"""Which architectures build, run and train: measured, one forked child each.

`python -m neuronqa.workload.audit [--sample N@SEED] [--type TYPE] [--workers N]`: what `neuronqa catalog audit` starts.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import logging
import os
import random
import resource
import select
import signal
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import torch
import transformers

from neuronqa.workload import architectures
from neuronqa.workload.architectures import Architecture
from neuronqa.workload.trial import Trial, attempt

DEADLINE_S: Final = 300.0
"""A child that is stuck; a busy one ends by its CPU limit, however crowded the machine is."""
MEMORY: Final = 8 << 30
CPU_S: Final = 60
TOLD_EVERY: Final = 100


@dataclass(frozen=True, kw_only=True)
class Result:
    """One pair as it was found, and what its child cost."""

    model_type: str
    class_name: str
    trial: Trial
    cpu_s: float
    wall_s: float
    peak_mb: float


@dataclass
class _Child:
    """A running child and what it has said so far."""

    architecture: Architecture
    pid: int
    pipe: int
    started: float
    said: bytes = b""


def audit(chosen: Sequence[Architecture], workers: int) -> Iterator[Result]:
    """Try every architecture in a child of its own, `workers` at a time."""
    _preload(chosen)
    waiting = list(reversed(chosen))
    running: dict[int, _Child] = {}
    while waiting or running:
        while waiting and len(running) < workers:
            child = _fork(waiting.pop())
            running[child.pipe] = child
        yield from _reap(running)


def sample(text: str) -> list[Architecture]:
    """`N@SEED`: that many pairs drawn at random. Raises ValueError for anything else."""
    number, _, seed = text.partition("@")
    pairs = list(architectures.pairs())
    return random.Random(int(seed)).sample(pairs, min(int(number), len(pairs)))


def summary(results: Iterable[Result]) -> dict[str, Any]:
    """The figures of an audit as JSON values.

    `clean` ran whole and shrunk; `trained`, of pairs, did that, its loss moved and every tower learnt; of model types
    it means that one head at least trained. `reasons` lists every pair that did not train clean, by what it needs.
    """
    found = list(results)
    types = {r.model_type for r in found}

    def of_types(reached: Any) -> int:
        return len({r.model_type for r in found if reached(r.trial)})

    reasons: dict[str, list[str]] = {}
    for r in found:
        if not r.trial.trained_clean:
            reasons.setdefault(r.trial.reason, []).append(f"{r.model_type}/{r.class_name}")
    return {
        "schema_version": 1,
        "transformers": transformers.__version__,
        "model_types": {
            "total": len(types),
            "built": of_types(lambda t: t.built),
            "ran": of_types(lambda t: t.ran),
            "trained": of_types(lambda t: t.trained),
        },
        "pairs": {
            "total": len(found),
            "ran": sum(r.trial.ran for r in found),
            "clean": sum(r.trial.ran_clean for r in found),
            "trained": sum(r.trial.trained_clean for r in found),
        },
        "reasons": {reason: sorted(pairs) for reason, pairs in sorted(reasons.items(), key=lambda i: -len(i[1]))},
        "cpu_s": _spread([r.cpu_s for r in found]),
        "peak_mb": _spread([r.peak_mb for r in found]),
    }


def _spread(values: list[float]) -> dict[str, float]:
    ranked = sorted(values) or [0.0]
    return {"median": round(ranked[len(ranked) // 2], 3), "p99": round(ranked[int(0.99 * (len(ranked) - 1))], 3)}


def _preload(chosen: Sequence[Architecture]) -> None:
    """Import once what children would import each; a module that cannot be imported fails in its own child."""
    for module in sorted({a.module for a in chosen}):
        with contextlib.suppress(Exception):
            importlib.import_module(module)
    gc.collect()
    gc.freeze()


def _fork(architecture: Architecture) -> _Child:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _child(architecture, writing)
    os.close(writing)
    return _Child(architecture, pid, reading, time.monotonic())


def _child(architecture: Architecture, writing: int) -> None:
    """Never returns."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    try:
        said = json.dumps(asdict(attempt(architecture)))
        with os.fdopen(writing, "w") as pipe:
            pipe.write(said)
    finally:
        os._exit(0)


def _reap(running: dict[int, _Child]) -> Iterator[Result]:
    ready, _, _ = select.select(list(running), [], [], 0.5)
    for pipe in list(running):
        child = running[pipe]
        over = time.monotonic() - child.started > DEADLINE_S
        heard = os.read(pipe, 1 << 16) if pipe in ready else b"."
        if over:
            os.kill(child.pid, signal.SIGKILL)
        elif pipe not in ready or heard:
            child.said += heard if pipe in ready else b""
            continue
        os.close(pipe)
        del running[pipe]
        yield _result(child, over=over)


def _result(child: _Child, *, over: bool) -> Result:
    _, status, usage = os.wait4(child.pid, 0)
    try:
        trial = Trial(**json.loads(child.said))
    except (ValueError, TypeError):
        died = "deadline" if over else f"signal {status & 0x7F}" if status & 0x7F else "died without a word"
        trial = Trial(reason=f"killed: {died}")
    return Result(
        model_type=child.architecture.model_type,
        class_name=child.architecture.class_name,
        trial=trial,
        cpu_s=usage.ru_utime + usage.ru_stime,
        wall_s=time.monotonic() - child.started,
        peak_mb=usage.ru_maxrss / 1024,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures as JSON, and each pair as it ends where asked."""
    parser = argparse.ArgumentParser(prog="python -m neuronqa.workload.audit")
    parser.add_argument("--sample", default="", help="N@SEED")
    parser.add_argument("--type", action="append", default=[], help="only these model types")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rows", default="", help="a file for one JSON line a pair")
    options = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    transformers.logging.set_verbosity(logging.CRITICAL)
    chosen = sample(options.sample) if options.sample else list(architectures.pairs())
    chosen = [a for a in chosen if not options.type or a.model_type in options.type]
    results = []
    with Path(options.rows).open("a", encoding="utf-8") if options.rows else contextlib.nullcontext() as rows:
        for result in audit(chosen, options.workers):
            results.append(result)
            if len(results) % TOLD_EVERY == 0:
                print(f"{len(results):,} of {len(chosen):,} pairs", file=sys.stderr, flush=True)
            if rows:
                rows.write(json.dumps(asdict(result)) + "\n")
                rows.flush()
    json.dump(summary(results), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
