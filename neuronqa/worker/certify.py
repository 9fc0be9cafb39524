"""Planting faults and good twins into one workload, each beside the same run without it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from neuronqa.checks import effect
from neuronqa.checks.seen import Reference
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Mode, Variant
from neuronqa.domain.finding import Finding
from neuronqa.domain.observation import MEMORY, WEIGHT_FILE, Exit, Observation
from neuronqa.domain.outcome import Check, Standing
from neuronqa.domain.policy import Limits, Thresholds
from neuronqa.domain.trial import NOTHING, Plant, Trial, matches
from neuronqa.domain.workload import Workload
from neuronqa.worker import folders
from neuronqa.worker.actor import outfit
from neuronqa.worker.exchange import Arrays, read_arrays, read_observation, read_tensors
from neuronqa.worker.judge import judge_device, judge_reference
from neuronqa.worker.runner import doubtful, steps_in_doubt
from neuronqa.worker.supervisor import Supervisor

SEARCH_S: Final = 20.0
MEMORY_MB: Final = 3072


@dataclass(frozen=True)
class _Run:
    """A device run and what it left."""

    findings: tuple[Finding, ...]
    observation: Observation | None
    arrays: Arrays

    @property
    def outcomes(self) -> dict[str, str]:
        return {one.check.value: str(one.outcome) for one in self.findings}

    @property
    def blamed(self) -> str:
        """The operator parity, or else training, names; or the memory that changed between two."""
        details = [one.outcome.detail for one in self.findings if one.check in (Check.PARITY, Check.TRAIN)]
        return next((one for one in details if "::" in one or one.startswith(MEMORY)), "")


@dataclass
class _Ground:
    """What all plants in one workload share: its reference, eager or compiled, and the runs without any plant."""

    workload: Workload
    eager: Variant
    home: Path
    steps: int
    reference: Reference | None = None
    """None where it is not fit to compare with."""
    plain: dict[Mode, _Run] = field(default_factory=dict)

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
        nothing = Plant(kind=NOTHING, op="")
        plain = ground.plain.get(variant.mode)
        if plain is None:
            plain = ground.plain[variant.mode] = self._run(ground, variant, nothing)
        if _is_right(self._order):
            yield self._twin(nothing, workload, variant, plain)
        if plain.observation is None or plain.outcomes["run"] != "run:pass":
            return
        for plant in plants:
            yield self._trial(ground, ground.reference, variant, plain, plant)

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

    def _trial(self, ground: _Ground, reference: Reference, variant: Variant, plain: _Run, plant: Plant) -> Trial:
        acted = _acts(plant, plain.observation)
        workload = ground.workload
        trial = Trial(
            plant=plant,
            family=workload.spec.family,
            workload=workload.hash,
            variant=str(variant),
            acted=acted,
            effect=0.0,
            plain=plain.outcomes,
            found={},
        )
        if not acted:
            return trial
        started = time.monotonic()
        faulty = self._run(ground, variant, plant)
        return replace(
            trial,
            effect=self._effect(reference, variant, plain, faulty) if plant.numeric else float("inf"),
            found=faulty.outcomes,
            blamed=faulty.blamed,
            seconds=time.monotonic() - started,
        )

    def _twin(self, nothing: Plant, workload: Workload, variant: Variant, plain: _Run) -> Trial:
        return Trial(
            plant=nothing,
            family=workload.spec.family,
            workload=workload.hash,
            variant=str(variant),
            acted=True,
            effect=0.0,
            plain={},
            found=plain.outcomes,
            blamed=plain.blamed,
        )

    def _run(self, ground: _Ground, variant: Variant, plant: Plant) -> _Run:
        number = next(self._numbers)
        reference = ground.folder
        out, search = ground.home / f"device-{number}", ground.home / f"search-{number}"
        order = replace(self._order, fault=dict(plant.fault) or None)
        asked = {**ground.request(variant), "order": order.to_json(), "reference": str(reference)}
        left = self._supervisor.run("device", {**asked, "out": str(out)}, _limits(plant.deadline_s))
        findings = self._judge(reference, out, left, variant)
        if doubtful(variant, findings):
            more = {
                "thresholds": asdict(self._thresholds),
                "seconds": SEARCH_S,
                "steps": steps_in_doubt(findings, self._thresholds),
                "out": str(search),
            }
            found = self._supervisor.run("deviation", {**asked, **more}, _limits())
            if found.done and not found.fault:
                findings = self._judge(reference, out, left, variant, search)
        run = _Run(findings, read_observation(out), read_tensors(out))
        for used in (out, search):
            folders.remove(used)
        return run

    def _judge(
        self, reference: Path, out: Path, left: Exit, variant: Variant, search: Path | None = None
    ) -> tuple[Finding, ...]:
        return judge_device(reference, out, left, variant, self._thresholds, search)

    def _measured(self, folder: Path, variant: Variant) -> Reference:
        observation = read_observation(folder)
        assert observation is not None, "a fit reference has left its observation"
        weights = read_arrays(folder / WEIGHT_FILE)
        return Reference.of(observation, read_tensors(folder), weights, variant.dtype, self._thresholds)

    def _effect(self, reference: Reference, variant: Variant, plain: _Run, faulty: _Run) -> float:
        """Infinite where the faulty run did not get as far as the plain one."""
        if faulty.outcomes["run"] != "run:pass":
            return float("inf")
        tensors = effect.of_tensors(reference, plain.arrays, faulty.arrays)
        return max(tensors, effect.of_curves(reference, plain.arrays, faulty.arrays, variant.dtype, self._thresholds))


def _is_right(order: BuildOrder) -> bool:
    """Is whatever this device is called wrong for a fault of the harness?"""
    return order.profile == "ideal" or order.device.partition(":")[0] == "cpu"


def _limits(deadline_s: float = 60.0) -> Limits:
    return Limits(deadline_s=deadline_s, memory_mb=MEMORY_MB)


def _acts(plant: Plant, plain: Observation | None) -> bool:
    """Does the plain run use an operator the plant acts on? A plant without operators acts on every run."""
    if not plant.op:
        return True
    return plain is not None and any(matches(plant.op, use.op) for use in plain.ops)
