"""A fault that is taken out of a loaded device leaves it as it was."""

from __future__ import annotations

from typing import Any

import pytest

from neuronqa.device import plantable
from neuronqa.domain.case import Variant
from neuronqa.errors import BadInput
from neuronqa.worker import planting
from neuronqa.worker.planting import read_trials
from tests.integration.device.test_device_faults import start, train

EAGER = Variant.parse("eager/fp32/train")
REMOVABLE = [dict(plant.fault) for plant in plantable.plants("neuron", EAGER) if plant.removable]


def losses() -> list[float]:
    model, tokens = start()
    model.to("neuron")
    try:
        return train(model, model, tokens.to("neuron"))
    except Exception as error:  # noqa: BLE001  some faults raise
        return [float(len(str(error)))]


def ops_of(device: Any) -> dict[str, str]:
    return {name: str(mechanism) for name, mechanism in dict(device.shim.operators()).items()}


@pytest.mark.device(profile="ideal")
def test_every_removable_fault_is_gone_when_it_is_taken_out(device: Any) -> None:
    right, support, told = losses(), ops_of(device), []
    for fault in REMOVABLE:
        with device.planted(fault):
            told.append(losses() != right)
        assert (fault, losses()) == (fault, right)
        assert (fault, ops_of(device)) == (fault, support)
    assert sum(told) > len(REMOVABLE) / 2


@pytest.mark.device(profile="ideal")
def test_a_fault_for_an_operator_there_is_not_is_refused(device: Any) -> None:
    with pytest.raises(BadInput, match="no operator is named"), device.planted({"kind": "scale", "op": "aten::none"}):
        pass


def test_a_line_that_was_cut_off_is_not_read(tmp_path: Any) -> None:
    assert read_trials(tmp_path) == []
    (tmp_path / planting.TRIALS_FILE).write_text('{}\n{"effect": 1.0}\n{"eff')
    assert read_trials(tmp_path) == [{}, {"effect": 1.0}]
