"""The register of faults: names, parameters, and which check must notice."""

from __future__ import annotations

import subprocess
import sys

import pytest

from neuronqa.device.neuron import faults
from neuronqa.device.neuron.faults import KINDS, Site
from neuronqa.domain.case import Mode
from neuronqa.domain.outcome import Check
from neuronqa.errors import BadInput


def test_there_are_at_least_sixty_faults_and_some_good_twins() -> None:
    assert sum(not kind.good for kind in KINDS.values()) >= 60
    assert sum(kind.good for kind in KINDS.values()) >= 3


def test_every_check_of_a_device_has_a_fault_that_it_must_notice() -> None:
    noticed = {kind.check for kind in KINDS.values()}
    assert {Check.RUN, Check.COMPILE, Check.FALLBACK, Check.STATE, Check.PARITY, Check.TRAIN} <= noticed


@pytest.mark.parametrize("name", sorted(KINDS))
def test_every_fault_can_be_ordered_by_its_name_alone(name: str) -> None:
    fault = faults.parse({"kind": name})
    assert fault.kind is KINDS[name]
    assert bool(fault.op) == (fault.kind.site is Site.OPERATOR)
    assert set(fault.kind.parameters) <= set(fault.parameters)
    assert fault.kind.modes


def test_faults_of_the_compiler_act_in_compiled_mode_only() -> None:
    for kind in KINDS.values():
        if kind.site is Site.COMPILER:
            assert kind.modes == (Mode.COMPILE,)


def test_an_order_may_change_pattern_and_parameters() -> None:
    fault = faults.parse({"kind": "scale", "op": "aten::tanh", "factor": 2, "phase": "backward", "nth": 3})
    assert fault.op == "aten::tanh"
    assert fault.number("factor") == 2.0
    assert fault.parameters["phase"] == "backward"


@pytest.mark.parametrize(
    "order",
    [
        {"kind": "gremlin"},
        {},
        {"kind": "scale", "colour": 1},
        {"kind": "scale", "factor": "much"},
        {"kind": "scale", "phase": "sideways"},
        {"kind": "scale", "phase": 1},
    ],
)
def test_a_wrong_order_is_bad_input(order: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        faults.parse(order)


def test_the_register_needs_no_torch() -> None:
    code = "import sys; import neuronqa.device.neuron.faults; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
