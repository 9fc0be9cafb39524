"""Many trials in one child: the workload without a plant, then with one plant after another in the same loaded device.

Each run is a device child's own, from the building of the model to the search for the operator to blame; only starting
the process, loading the device and reading the reference are done once. A plant that ends its process is not for here.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from neuronqa.checks.seen import Reference, Seen
from neuronqa.device.protocol import Adapter, Device
from neuronqa.domain.build import BuildOrder, Prepared
from neuronqa.domain.case import Variant
from neuronqa.domain.finding import Finding
from neuronqa.domain.identity import relaxed, strict
from neuronqa.domain.observation import WEIGHT_FILE, Exit, Observation, Progress
from neuronqa.domain.policy import Thresholds
from neuronqa.domain.trial import Plant
from neuronqa.worker import deviation, device_child
from neuronqa.worker.exchange import Arrays, read_arrays, read_observation, read_tensors
from neuronqa.worker.judge import judge_seen
from neuronqa.worker.judged import JudgedRun, moved
from neuronqa.worker.reference import Build
from neuronqa.worker.runner import doubtful, steps_in_doubt

TRIALS_FILE: Final = "trials.jsonl"
ENDED: Final = Exit(done=True, progress=Progress.DONE, code=0)
"""What has to be said of how a run ended that did so within its process."""


def plant_in_turn(
    request: Mapping[str, Any],
    build: Build,
    adapter: Callable[[str], Adapter],
    emit: Callable[[Progress], None],
) -> None:
    """Fill `request["out"]` as a device child does that nothing is planted in, then plant in turn.

    TRIALS_FILE has a line `{}` once the first is done, and in order one for each of `request["plants"]` (`{"op",
    "fault"}`) as it is made: `{"outcomes", "blamed", "effect", "seconds"}`, or `{}` for one that acts on nothing here.
    """
    order = BuildOrder.from_json(request["order"])
    device = adapter(order.device).load(order, request.get("last_op_file", ""))
    bench = _Bench(request, build, _Loaded(device), emit)
    out = Path(request["out"])
    plain = bench.run(out, None)
    if plain.observation is None or not plain.finished:
        return
    _add(out, {})
    for asked in request["plants"]:
        acts = Plant(kind="", op=asked["op"]).acts(plain.observation.ops)
        _add(out, bench.trial(asked["fault"], plain) if acts else {})


def _add(folder: Path, row: Mapping[str, Any]) -> None:
    with (folder / TRIALS_FILE).open("a", encoding="ascii") as file:
        file.write(json.dumps(strict(row)) + "\n")


def read_trials(folder: Path) -> list[dict[str, Any]]:
    """What a child wrote of its trials, without a line it was cut off at."""
    try:
        text = (folder / TRIALS_FILE).read_text(encoding="ascii")
    except FileNotFoundError:
        return []
    return [relaxed(json.loads(line)) for line in text.rpartition("\n")[0].splitlines()]


@dataclass(frozen=True)
class _Loaded:
    """An adapter for a device that is loaded already."""

    device: Device

    def prepare(self, order: BuildOrder) -> Prepared:
        del order
        raise AssertionError("a loaded device was prepared long ago")

    def load(self, order: BuildOrder, last_op_file: str = "") -> Device:
        del order, last_op_file
        return self.device


class _Bench:
    """One workload on one loaded device beside its reference, which is read once."""

    def __init__(
        self, request: Mapping[str, Any], build: Build, loaded: _Loaded, emit: Callable[[Progress], None]
    ) -> None:
        self._request = request
        self._build = build
        self._loaded = loaded
        self._emit = emit
        self._variant = Variant.parse(request["variant"])
        self._thresholds = Thresholds(**request["thresholds"])
        folder = Path(request["reference"])
        observation = read_observation(folder)
        assert observation is not None, "plants are for workloads with a fit reference"
        weights = read_arrays(folder / WEIGHT_FILE)
        self._reference = Reference.of(
            observation, read_tensors(folder), weights, self._variant.dtype, self._thresholds
        )

    def trial(self, fault: Mapping[str, Any], plain: JudgedRun) -> dict[str, Any]:
        started = time.monotonic()
        out = Path("trial").absolute()
        out.mkdir()
        faulty = self.run(out, fault)
        shutil.rmtree(out)
        return {
            "outcomes": faulty.outcomes,
            "blamed": faulty.blamed,
            "effect": moved(self._reference, self._variant, self._thresholds, plain, faulty),
            "seconds": time.monotonic() - started,
        }

    def run(self, out: Path, fault: Mapping[str, Any] | None) -> JudgedRun:
        """Run and judge; where that leaves doubt, search for the operator to blame, and judge again."""
        request = {**self._request, "out": str(out)}
        with self._planted(fault):
            device_child.observe(request, self._build, self._adapter, self._emit)
        run = JudgedRun((), read_observation(out), read_tensors(out))
        run = replace(run, findings=self._judged(run))
        if not doubtful(self._variant, run.findings):
            return run
        folder = Path("search").absolute()
        folder.mkdir()
        more = {"out": str(folder), "steps": steps_in_doubt(run.findings, self._thresholds)}
        with self._planted(fault):
            deviation.search({**request, **more}, self._build, self._adapter, self._emit)
        search, arrays = read_observation(folder), read_tensors(folder)
        shutil.rmtree(folder)
        return replace(run, findings=self._judged(run, search, arrays))

    def _planted(self, fault: Mapping[str, Any] | None) -> AbstractContextManager[None]:
        planted: Callable[[Mapping[str, Any]], AbstractContextManager[None]] = self._loaded.device.planted  # type: ignore[attr-defined]
        return nullcontext() if fault is None else planted(fault)

    def _adapter(self, name: str) -> Adapter:
        del name
        return self._loaded

    def _judged(
        self, run: JudgedRun, search: Observation | None = None, arrays: Arrays | None = None
    ) -> tuple[Finding, ...]:
        return judge_seen(
            Seen(
                reference=self._reference,
                device=run.observation,
                arrays=run.arrays,
                left=ENDED,
                variant=self._variant,
                thresholds=self._thresholds,
                search=search,
                search_arrays=arrays or {},
            )
        )
