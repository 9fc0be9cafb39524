"""Planting faults and good twins into one workload, each beside the same run without it."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from neuronqa.checks.seen import Reference
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Mode, Variant
from neuronqa.domain.finding import Finding
from neuronqa.domain.observation import WEIGHT_FILE, Exit
from neuronqa.domain.outcome import Standing
from neuronqa.domain.policy import Limits, Thresholds
from neuronqa.domain.trial import NOTHING, Plant, Trial
from neuronqa.domain.workload import Workload
from neuronqa.worker import folders, planting
from neuronqa.worker.actor import outfit
from neuronqa.worker.exchange import read_arrays, read_observation, read_tensors
from neuronqa.worker.judge import judge_device, judge_reference
from neuronqa.worker.judged import JudgedRun, moved
from neuronqa.worker.runner import doubtful, steps_in_doubt
from neuronqa.worker.supervisor import Supervisor

SEARCH_S: Final = 20.0
PLAIN_S: Final = 60.0
TRIAL_S: Final = 30.0
"""Together the deadline of a process with so many plants; most take one second."""
MEMORY_MB: Final = 3072


@dataclass
class _Ground:
    """What all plants in one workload share: its reference, eager or compiled, and the runs without any plant."""

    workload: Workload
    eager: Variant
    home: Path
    steps: int
    reference: Reference | None = None
    """None where it is not fit to compare with."""
    plain: dict[Mode, JudgedRun] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.home / "reference"

    def request(self, variant: Variant) -> dict[str, Any]:
        return {"workload": self.workload.to_json(), "variant": str(variant), "steps": self.steps}


class Certifier:
    """Holds a zygote, and the ground of the last workload. To be used on the main thread of its process."""

    def __init__(self, order: BuildOrder, thresholds: Thresholds) -> None:
        self._order = order
        self._thresholds = thresholds
        self._work = folders.WorkFolder()
        self._supervisor = Supervisor(self._work.path, outfit(order.device))
        self._numbers = itertools.count(1)
        self._ground: _Ground | None = None

    def close(self) -> None:
        self._supervisor.close()
        self._work.close()

    def trials(self, workload: Workload, variant: Variant, plants: Sequence[Plant]) -> Iterator[Trial]:
        """One trial a plant; none where the reference is unfit or the plain run does not finish."""
        ground = self._ground_of(workload, variant)
        if ground.reference is None:
            return
        plain, rows = self._in_turn(ground, variant, plants)
        nothing = _trial(ground, variant, plain, Plant(kind=NOTHING, op=""))
        if _is_right(self._order):
            yield replace(nothing, plain={}, found=plain.outcomes, blamed=plain.blamed)
        if plain.observation is None or not plain.finished:
            return
        for number, plant in enumerate(plants):
            trial = _trial(ground, variant, plain, plant)
            if not trial.acted:
                yield trial
            elif number in rows:
                yield _with(trial, **rows[number])
            else:
                yield self._alone(ground, ground.reference, variant, plain, trial)

    def _ground_of(self, workload: Workload, variant: Variant) -> _Ground:
        """The ground of the last call, if that is the one; else a new one, and the last is cleared away."""
        eager = replace(variant, mode=Mode.EAGER)
        if self._ground is not None and (self._ground.workload, self._ground.eager) == (workload, eager):
            return self._ground
        if self._ground is not None:
            folders.remove(self._ground.home)
        self._supervisor.share_for(workload)
        home = self._work.path / f"certify-{next(self._numbers)}"
        home.mkdir(mode=0o700)
        ground = self._ground = _Ground(workload, eager, home, self._thresholds.train_steps)
        asked = {**ground.request(eager), "out": str(ground.folder)}
        left = self._supervisor.run("reference", asked, _limits())
        if all(one.outcome.standing is Standing.PASS for one in judge_reference(ground.folder, left)):
            ground.reference = self._measured(ground.folder, eager)
        return ground

    def _in_turn(
        self, ground: _Ground, variant: Variant, plants: Sequence[Plant]
    ) -> tuple[JudgedRun, dict[int, dict[str, Any]]]:
        """The run without a plant, and by number what came of every plant that acts and that a process outlived."""
        rows: dict[int, dict[str, Any]] = {}
        waiting = [number for number, plant in enumerate(plants) if plant.removable]
        while waiting or variant.mode not in ground.plain:
            asked = [{"op": plants[number].op, "fault": dict(plants[number].fault)} for number in waiting]
            run, made = self._planting(ground, variant, asked)
            ground.plain.setdefault(variant.mode, run)
            rows |= {number: row for number, row in zip(waiting, made[1:], strict=False) if row}
            waiting = waiting[len(made) :] if made else []  # the next one is what ended the process, if anything did
        return ground.plain[variant.mode], rows

    def _planting(
        self, ground: _Ground, variant: Variant, asked: Sequence[dict[str, Any]]
    ) -> tuple[JudgedRun, list[dict[str, Any]]]:
        out = ground.home / f"planting-{next(self._numbers)}"
        request = {
            **self._request(ground, variant, self._order),
            "thresholds": asdict(self._thresholds),
            "seconds": SEARCH_S,
            "plants": list(asked),
            "out": str(out),
        }
        left = self._supervisor.run("planting", request, _limits(PLAIN_S + TRIAL_S * len(asked)))
        rows = planting.read_trials(out)
        run = self._judged(ground, variant, self._order, planting.ENDED if rows else left, out)
        folders.remove(out)
        return run, rows

    def _alone(self, ground: _Ground, reference: Reference, variant: Variant, plain: JudgedRun, trial: Trial) -> Trial:
        """In a process of its own."""
        plant, started = trial.plant, time.monotonic()
        out = ground.home / f"device-{next(self._numbers)}"
        order = replace(self._order, fault=dict(plant.fault) or None)
        request = {**self._request(ground, variant, order), "out": str(out)}
        left = self._supervisor.run("device", request, _limits(plant.deadline_s))
        faulty = self._judged(ground, variant, order, left, out)
        folders.remove(out)
        return _with(
            trial,
            outcomes=faulty.outcomes,
            blamed=faulty.blamed,
            effect=moved(reference, variant, self._thresholds, plain, faulty),
            seconds=time.monotonic() - started,
        )

    def _judged(self, ground: _Ground, variant: Variant, order: BuildOrder, left: Exit, out: Path) -> JudgedRun:
        """What a run left in `out`; where that leaves doubt, with the operator to blame."""
        findings = self._judge(ground.folder, out, left, variant)
        if doubtful(variant, findings):
            search = ground.home / f"search-{next(self._numbers)}"
            more = {
                "thresholds": asdict(self._thresholds),
                "seconds": SEARCH_S,
                "steps": steps_in_doubt(findings, self._thresholds),
                "out": str(search),
            }
            found = self._supervisor.run("deviation", {**self._request(ground, variant, order), **more}, _limits())
            if found.done and not found.fault:
                findings = self._judge(ground.folder, out, left, variant, search)
            folders.remove(search)
        return JudgedRun(findings, read_observation(out), read_tensors(out))

    def _request(self, ground: _Ground, variant: Variant, order: BuildOrder) -> dict[str, Any]:
        return {**ground.request(variant), "order": order.to_json(), "reference": str(ground.folder)}

    def _judge(
        self, reference: Path, out: Path, left: Exit, variant: Variant, search: Path | None = None
    ) -> tuple[Finding, ...]:
        return judge_device(reference, out, left, variant, self._thresholds, search)

    def _measured(self, folder: Path, variant: Variant) -> Reference:
        observation = read_observation(folder)
        assert observation is not None, "a fit reference has left its observation"
        weights = read_arrays(folder / WEIGHT_FILE)
        return Reference.of(observation, read_tensors(folder), weights, variant.dtype, self._thresholds)


def _trial(ground: _Ground, variant: Variant, plain: JudgedRun, plant: Plant) -> Trial:
    """What is known beforehand."""
    return Trial(
        plant=plant,
        family=ground.workload.spec.family,
        workload=ground.workload.hash,
        variant=str(variant),
        acted=plant.acts(plain.observation.ops if plain.observation is not None else ()),
        effect=0.0,
        plain=plain.outcomes,
        found={},
    )


def _with(trial: Trial, *, outcomes: Mapping[str, str], blamed: str, effect: float, seconds: float) -> Trial:
    """And what came of it."""
    effect = effect if trial.plant.numeric else math.inf
    return replace(trial, found=outcomes, blamed=blamed, effect=effect, seconds=seconds)


def _is_right(order: BuildOrder) -> bool:
    """Is whatever this device is called wrong for a fault of the harness?"""
    return order.profile == "ideal" or order.device.partition(":")[0] == "cpu"


def _limits(deadline_s: float = 60.0) -> Limits:
    return Limits(deadline_s=deadline_s, memory_mb=MEMORY_MB)
