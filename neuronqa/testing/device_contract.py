"""What NeuronQA needs of a device, as a test class: subclass it in your tests and name your device.

    class TestMine(DeviceContract):
        device = "mine"
        lacks = {"compile/fp32/train": "there is no compile backend yet"}

`device` is a name that `--device` takes: an accelerator of torch, `cpu:BACKEND`, or a plugin of the entry point group
`neuronqa.devices`. What is in `lacks` is listed by its reason, and must really be lacking: a reason that has become
wrong fails.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

import pytest

from neuronqa.device.prepare import prepare
from neuronqa.domain.build import BuildOrder, Prepared
from neuronqa.domain.case import Variant
from neuronqa.domain.finding import Finding
from neuronqa.domain.job import Job, Ticket
from neuronqa.domain.outcome import Check, Kind, Rung, Stage, Standing
from neuronqa.domain.policy import Policy
from neuronqa.domain.workload import Workload
from neuronqa.sweep.controls import Control, load_controls
from neuronqa.sweep.policies import load_policy
from neuronqa.worker.actor import CaseActor

POLICY = load_policy("gating")
SOUND = ("perceptron", "decoder")
"""Hosts of controls that are right everywhere."""
Findings = dict[Check, Finding]


class Bench:
    """A prepared device and one worker."""

    def __init__(self, device: str, profile: str = "") -> None:
        self.prepared: Prepared = prepare(BuildOrder(device=device, profile=profile))
        self._actor = CaseActor(device)

    def run(self, workload: Workload, variant: Variant, order: BuildOrder, policy: Policy = POLICY) -> Findings:
        """The findings of one attempt, those of its reference included."""
        ticket = Ticket(id=secrets.token_hex(8), variant=variant, order=order)
        limits = replace(policy.limits, probes=0)
        job = Job(workload=workload, tickets=(ticket,), thresholds=policy.thresholds, limits=limits)
        (result,) = self._actor.run([job])
        assert not result.lost, result.lost
        found = (*result.references[0].findings, *result.attempts[0].findings)
        return {one.check: one for one in found}

    def close(self) -> None:
        self._actor.close()


class DeviceContract:
    """Every test is one promise."""

    device: ClassVar[str]
    profile: ClassVar[str] = ""
    lacks: ClassVar[Mapping[str, str]] = {}
    """What the device cannot do yet and why: a variant, a check in a variant (`graph compile/fp32/train`), or the name
    of a control."""

    @pytest.fixture(scope="class")
    @classmethod
    def bench(cls) -> Iterator[Bench]:
        bench = Bench(cls.device, cls.profile)
        yield bench
        bench.close()

    def test_it_is_prepared_alike_each_time(self, bench: Bench) -> None:
        again = prepare(BuildOrder(device=self.device, profile=self.profile))
        assert again.vector.hash == bench.prepared.vector.hash
        assert again.order == bench.prepared.order

    @pytest.mark.parametrize("host", SOUND)
    @pytest.mark.parametrize("variant", [str(variant) for variant in POLICY.variants])
    def test_a_sound_model_runs_is_right_and_trains(self, bench: Bench, host: str, variant: str) -> None:
        found = bench.run(_host(host), Variant.parse(variant), bench.prepared.order)
        wrong = {
            check.value: f"{one.outcome}: {one.evidence['words']}"
            for check, one in found.items()
            if check is not Check.FALLBACK and one.outcome.standing is not Standing.PASS
        }
        excused = {check for check in wrong if {variant, f"{check} {variant}"} & self.lacks.keys()}
        assert wrong.keys() <= excused, {check: words for check, words in wrong.items() if check not in excused}
        listed = [entry for entry in self.lacks if entry.endswith(variant)]
        assert excused or not listed, f"it works: take {listed} from `lacks`"

    @pytest.mark.parametrize("host", SOUND)
    def test_where_operators_ran_is_told_or_said_to_be_unknown(self, bench: Bench, host: str) -> None:
        said = bench.run(_host(host), Variant.parse("eager/fp32/train"), bench.prepared.order)[Check.FALLBACK].outcome
        unknown = said.kind is Kind.INCONCLUSIVE_NOT_OBSERVABLE
        assert unknown or said.kind.stage is Stage.FALLBACK, str(said)

    def test_every_control_that_can_be_planted_is_caught(self, bench: Bench) -> None:
        """All in one test: a table of what was missed says more than its first line."""
        planted = load_controls(POLICY, self.device)
        missed = {}
        for control in planted:
            verdict = control.judge(list(self._plant(bench, control).values()))
            if not verdict.caught:
                missed[control.name] = verdict.judged
        unexcused = {name: judged for name, judged in missed.items() if name not in self.lacks}
        assert not unexcused, f"missed {len(unexcused)} of {len(planted)}: {unexcused}"
        assert {control.guards.rung for control in planted} >= {Rung.RUNS, Rung.PARITY}

    def _plant(self, bench: Bench, control: Control) -> Findings:
        return bench.run(control.workload, control.variant, replace(bench.prepared.order, fault=control.fault))


def _host(name: str) -> Workload:
    """The workload of a control, as it is without anything planted."""
    for device in ("neuron", ""):
        for control in load_controls(POLICY, device):
            spec = control.workload.spec
            if getattr(spec, "factory", "") == name and getattr(spec, "deadline_s", None) is None:
                return control.workload
    raise LookupError(name)
