"""What a certification counts: planted, effective, noticed, rightly blamed, false alarms."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from neuronqa.checks import effect
from neuronqa.checks.steps import adamw_step
from neuronqa.device import plantable
from neuronqa.domain.case import Dtype, Variant
from neuronqa.domain.identity import strict
from neuronqa.domain.outcome import Check
from neuronqa.domain.trial import NOTHING, Plant, Trial, matches
from neuronqa.sweep import certification
from tests.unit.checks.made import STEPS, THRESHOLDS, reference, right, weights

SCALE = Plant(kind="scale", op="aten::mm|aten::bmm", check="parity", fault={"kind": "scale"})
CRASH = Plant(kind="segfault", op="aten::mm", check="run", numeric=False)
TWIN = Plant(kind="twin", op="aten::mm")
PASSES = {"run": "run:pass", "parity": "parity:pass", "train": "train:pass"}


def trial(plant: Plant = SCALE, effect: float = 10.0, **more: Any) -> Trial:
    whole = Trial(
        plant=plant,
        family="llama",
        workload="w1",
        variant="eager/fp32/train",
        acted=True,
        effect=effect,
        plain=PASSES,
        found={**PASSES, "parity": "parity:scale(aten::mm float32)"},
        blamed="aten::mm float32",
    )
    return replace(whole, **more)


MATCHES = [
    ("aten::mm", "aten::mm", True),
    ("aten::mm|aten::bmm", "aten::bmm", True),
    ("aten::mm", "aten::bmm", False),
    ("aten::add", "aten::add.Tensor", True),
    ("aten::add.Tensor", "aten::add.Scalar", False),
    ("aten::sum*", "aten::sum.dim_IntList", True),
    ("aten::*_backward", "aten::gelu_backward", True),
]


@pytest.mark.parametrize(("patterns", "op", "yes"), MATCHES)
def test_a_pattern_names_operators_with_or_without_overload(patterns: str, op: str, yes: bool) -> None:
    assert matches(patterns, op) is yes


def test_a_fault_is_noticed_by_what_fails_only_with_it() -> None:
    assert trial().noticed_by == ("parity",)
    already = {**PASSES, "parity": "parity:scatter(output)"}
    assert trial(plain=already).noticed_by == ()
    assert trial(found=PASSES).noticed_by == ()


def test_a_cause_is_right_when_the_blamed_operator_is_planted_in() -> None:
    assert trial().right_cause is True
    assert trial(blamed="aten::gelu float32").right_cause is False
    assert trial(blamed="").right_cause is False
    whole = replace(SCALE, op="aten::_softmax")
    assert trial(whole, blamed="aten::_safe_softmax float32").right_cause is True
    part = replace(SCALE, op="aten::sqrt|aten::index_select|aten::div.Tensor")
    for blamed, yes in (
        ("aten::_foreach_sqrt float32", True),
        ("aten::_foreach_neg float32", False),
        ("aten::embedding float32", True),
        ("aten::div.Scalar float32", True),
        ("aten::gather float32", False),
    ):
        assert trial(part, blamed=blamed).right_cause is yes
    between = replace(SCALE, culprit="memory|aten::mm")
    assert trial(between, blamed="memory float32").right_cause is True
    assert trial(CRASH).right_cause is None
    assert trial(found=PASSES).right_cause is None


def summary(*trials: Trial) -> dict[str, Any]:
    found = certification.summary(trials, "neuron")
    json.dumps(strict(found), allow_nan=False)
    return found


def test_the_figures_add_up() -> None:
    missed = trial(found=PASSES, workload="w2")
    crash = trial(CRASH, effect=math.inf, found={**PASSES, "run": "run:crash(SIGSEGV aten::mm)"})
    found = summary(
        trial(), missed, trial(effect=1.0, found=PASSES), crash, trial(acted=False), trial(TWIN, 0.1, found=PASSES)
    )
    figures = {name: found[name] for name in ("faults", "workloads", "planted", "effective", "detected", "good_twins")}
    assert figures == {"faults": 2, "workloads": 2, "planted": 4, "effective": 3, "detected": 2, "good_twins": 1}
    assert (found["first_deviation_asked"], found["first_deviation_right"], found["false_alarms"]) == (1, 1, 0)
    assert [row["kind"] for row in found["missed"]] == ["scale"]
    assert found["by_check"]["run"] == {"planted": 1, "effective": 1, "detected": 1, "detected_by_it": 1}


def test_a_twin_that_moves_too_much_is_no_good_twin_and_one_that_is_noticed_is_an_alarm() -> None:
    found = summary(trial(TWIN, 0.8), trial(TWIN, 0.2))
    assert (found["good_twins"], found["false_alarms"]) == (1, 1)
    assert found["alarms"][0]["effect"] == 0.2


def test_only_kinds_always_noticed_in_twenty_certain_trials_are_fit_for_a_sweep() -> None:
    many = [trial(workload=f"w{number}") for number in range(20)]
    assert summary(*many)["pool"] == ["scale"]
    assert summary(*many[:19])["pool"] == []
    assert summary(*many[:19], trial(found=PASSES))["pool"] == []
    assert summary(*many[:19], trial(effect=3.0))["pool"] == []


def test_the_power_curve_counts_by_size() -> None:
    rows = {row["from"]: row for row in summary(trial(effect=3.0), trial(effect=3.5, found=PASSES))["power"]}
    assert rows[2.0] == {"from": 2.0, "planted": 2, "noticed": 1}
    assert sum(row["planted"] for row in rows.values()) == 2


def moved(**changes: Any) -> float:
    return effect.of_tensors(reference(), right(7), {**right(7), **changes})


def test_no_change_has_no_effect() -> None:
    assert moved() == 0
    assert effect.of_curves(reference(), right(7), right(7), Dtype.FP32, THRESHOLDS) == 0


def test_an_effect_is_measured_in_tolerances_against_the_run_without_the_fault() -> None:
    one = reference().yardsticks["grad/first.weight"]
    gradient = right(7)["grad/first.weight"].astype(np.float64) + 3 * one.tolerance
    start = weights()["param/first.weight"]
    shifted = {"grad/first.weight": gradient, "param/first.weight": start + adamw_step(start, gradient)}
    assert moved(**shifted) == pytest.approx(3, rel=0.01)


def test_a_tensor_that_is_gone_or_not_finite_is_moved_without_bound() -> None:
    assert moved(loss=np.asarray(np.nan)) == math.inf
    assert moved(**{"output/logits": np.zeros((2, 2))}) == math.inf


def test_a_curve_is_moved_in_widths() -> None:
    late = right(7)
    late["curve/loss"] = late["curve/loss"] + np.linspace(0, 0.5, STEPS)
    assert effect.of_curves(reference(), right(7), late, Dtype.FP32, THRESHOLDS) > 100


@pytest.mark.parametrize("device", ["neuron", "cpu"])
def test_every_device_takes_faults_and_twins_and_says_what_they_leave_unguarded(device: str) -> None:
    taken = plantable.plants(device, Variant.parse("eager/fp32/train"))
    assert {plant.good for plant in taken} == {True, False}
    assert len({str(plant.fault) for plant in taken}) == len(taken)
    guarded = {plant.check for plant in taken}
    assert Check.PARITY.value in guarded
    assert not guarded & set(plantable.unguarded(device))


def test_the_simulated_device_takes_sixty_kinds_of_fault() -> None:
    kinds = {
        plant.kind
        for text in ("eager/fp32/train", "compile/fp32/train")
        for plant in plantable.plants("neuron", Variant.parse(text))
        if not plant.good
    }
    assert len(kinds) >= 60


def test_planning_a_certification_loads_no_torch() -> None:
    code = "import sys, neuronqa.cli.controls, neuronqa.device.plantable; assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_right_device_on_which_nothing_is_planted_is_a_good_twin() -> None:
    nothing = Plant(kind=NOTHING, op="")
    broken_graph = {"graph": "graph:break(GB0170)", "train": "inconclusive:no-baseline(loss does not fall)"}
    assert trial(nothing, 0.0, plain={}, found={**PASSES, **broken_graph}).noticed_by == ()
    assert trial(nothing, 0.0, plain={}, found={**PASSES, "parity": "parity:scatter(output)"}).noticed_by == ("parity",)


@pytest.mark.parametrize(
    ("found", "trials", "bound"), [(0, 3000, 0.000998), (0, 60, 0.0487), (1, 100, 0.0466), (0, 0, 1.0)]
)
def test_no_alarm_in_three_thousand_bounds_the_rate_by_one_in_a_thousand(found: int, trials: int, bound: float) -> None:
    assert certification.upper_bound(found, trials) == pytest.approx(bound, rel=0.01)
