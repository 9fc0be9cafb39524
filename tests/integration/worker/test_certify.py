"""Faults planted one after another in one process are found as those in processes of their own are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from neuronqa import catalog as catalogs
from neuronqa.device import plantable
from neuronqa.device.prepare import prepare
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Variant
from neuronqa.domain.trial import Plant, Trial
from neuronqa.sweep import certification
from neuronqa.sweep.policies import load_policy
from neuronqa.worker.certify import Certifier

EAGER = Variant.parse("eager/fp32/train")
KINDS = ("scale", "zero", "nan", "stale", "unstable", "late-drift", "silent-fallback", "delayed-error", "twin-noise")


def told(trial: Trial) -> tuple[str, bool, dict[str, str], str]:
    return trial.plant.kind, trial.acted, dict(trial.found), trial.blamed


@pytest.mark.full
def test_a_process_that_outlives_its_faults_finds_each_as_its_own_process_would() -> None:
    order = prepare(BuildOrder(device="neuron", profile="ideal")).order
    plants = [plant for plant in plantable.plants("neuron", EAGER) if plant.kind in KINDS]
    (workload,) = certification.choose(catalogs.open("top-100k"), 1)
    certifier = Certifier(order, load_policy("quick").thresholds)
    try:

        def trials(plants: list[Plant]) -> list[Trial]:
            return list(certifier.trials(workload, EAGER, plants))

        together = trials(plants)
        alone = trials([replace(plant, removable=False) for plant in plants])
    finally:
        certifier.close()
    assert [told(one) for one in together] == [told(one) for one in alone]
    assert [one.effect for one in together] == pytest.approx([one.effect for one in alone])
