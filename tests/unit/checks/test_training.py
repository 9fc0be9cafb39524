"""Training curves against an envelope of rounding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuronqa.checks import training
from neuronqa.domain.finding import Finding
from neuronqa.domain.outcome import Check, Kind
from tests.unit.checks.made import STEPS, THRESHOLDS, Arrays, device, reference, reference_arrays, right, seen

REFERENCE = reference()


def judge(arrays: Arrays, stopped: Check | None = None) -> Finding:
    return training.judge(seen(device(arrays), arrays, stopped=stopped, against=REFERENCE))


def changed(name: str, values: object) -> Arrays:
    arrays = right(7)
    arrays[f"curve/{name}"] = np.asarray(values(arrays[f"curve/{name}"]))  # type: ignore[operator]
    return arrays


def from_step(step: int, factor: float) -> object:
    def change(
        curve: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        curve = curve.copy()
        curve[step:] *= factor
        return curve

    return change


def test_a_curve_inside_the_envelope_passes() -> None:
    found = judge(right(7))
    assert found.outcome.kind is Kind.TRAIN_PASS
    assert found.measure is not None
    assert found.measure < 1


TABLE = [
    ("loss leaves late", "loss", from_step(5, 1.01), "train:diverged", 5),
    ("gradient scaled, loss alike", "gradient", from_step(0, 1.5), "train:gradient-norm", 0),
    ("gradient scaled a little", "gradient", from_step(3, 0.998), "train:gradient-norm", 3),
    ("update too small", "update", from_step(0, 0.9), "train:update-norm", 0),
    ("loss stays", "loss", lambda c: np.full_like(c, c[0]), "train:plateau", 1),
    ("loss explodes", "loss", lambda c: c[0] * 2.0 ** np.arange(c.size), "train:diverged", 1),
    ("NaN at step 4", "loss", from_step(4, np.nan), "train:non-finite(loss)", 4),
    ("Inf gradient", "gradient", from_step(2, np.inf), "train:non-finite(gradient)", 2),
]


@pytest.mark.parametrize(("name", "signal", "change", "outcome", "step"), TABLE, ids=[row[0] for row in TABLE])
def test_a_curve_that_goes_so_is_judged_so(name: str, signal: str, change: object, outcome: str, step: int) -> None:
    found = judge(changed(signal, change))
    assert str(found.outcome) == outcome, name
    assert found.evidence["step"] == step
    assert str(step) in found.evidence["words"]


def test_one_parameter_whose_gradient_is_scaled_is_found_in_the_norm() -> None:
    def change(
        norms: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    ) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        norms = norms.copy()
        norms[:, 1] *= 1.01
        return norms

    assert judge(changed("gradient", change)).outcome.kind is Kind.TRAIN_GRADIENT_NORM


def baseline(loss: object, noise: float = 0.0) -> Finding:
    """Judge a right device against a CPU whose loss goes so, and whose norms differ by `noise` from run to run."""
    arrays = reference_arrays()
    arrays["curve/loss"] = np.asarray(loss(arrays["curve/loss"]))  # type: ignore[operator]
    arrays["curve/gradient"][1] *= 1 + noise
    return training.judge(seen(device(right(7)), right(7), against=reference(arrays)))


def test_a_baseline_that_does_not_train_is_no_baseline() -> None:
    assert str(baseline(lambda c: np.full_like(c, 1.75)).outcome) == "inconclusive:no-baseline(loss does not fall)"
    assert str(baseline(lambda c: c[:, ::-1]).outcome) == "inconclusive:no-baseline(loss does not fall)"


def test_a_baseline_that_becomes_nan_is_no_baseline() -> None:
    def change(
        curve: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    ) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        curve = curve.copy()
        curve[0, 5] = np.nan
        return curve

    assert str(baseline(change).outcome) == "inconclusive:no-baseline(non-finite)"


def hidden(
    curve: np.ndarray[tuple[int, int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    curve = curve.copy()
    curve[1] += 0.5
    return curve


def test_a_loss_that_rounding_hides_is_judged_by_the_norms() -> None:
    found = baseline(hidden)
    assert found.outcome.kind is Kind.TRAIN_PASS
    assert "norms" in found.evidence["words"]


def test_a_baseline_lost_in_its_own_rounding_is_no_baseline() -> None:
    assert str(baseline(hidden, noise=0.1).outcome) == "inconclusive:no-baseline(loss falls within rounding)"


def test_one_step_shows_no_training() -> None:
    assert str(baseline(lambda c: c[:, :1]).outcome) == "inconclusive:no-power(steps)"


def test_a_run_that_stopped_shows_what_left_before_and_else_nothing() -> None:
    arrays = {name: array[:3] if name.startswith("curve/") else array for name, array in right(7).items()}
    assert str(judge(arrays, Check.RUN).outcome) == "not-run:blocked(run)"
    assert str(judge(arrays).outcome) == "inconclusive:no-power(steps)"
    arrays["curve/gradient"] = arrays["curve/gradient"] * 2
    assert str(judge(arrays, Check.RUN).outcome) == "train:gradient-norm"


def test_a_run_that_left_no_curve_blocks_the_check() -> None:
    assert str(judge({}, Check.LOAD).outcome) == "not-run:blocked(load)"


def test_the_envelope_never_narrows_and_never_sinks_below_rounding() -> None:
    runs = np.asarray([[1.0, 1.0, 1.0], [1.0, 1.1, 1.0]])
    width = training.envelope(runs, None, np.full(3, 1e-6), 8.0)
    assert width[0] == 1e-6
    assert width[2] == width[1] == pytest.approx(8.0 * 0.1 / 2)


def test_what_every_run_on_the_cpu_loses_widens_the_envelope() -> None:
    runs = np.ones((3, 4))
    width = training.envelope(runs, np.full(4, 0.99), np.full(4, 1e-6), 8.0)
    assert width == pytest.approx(np.full(4, 0.08))


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(min_value=1000, max_value=10**9))
def test_no_right_curve_is_called_wrong(seed: int) -> None:
    assert judge(right(seed)).outcome.kind is Kind.TRAIN_PASS


def test_the_made_curves_have_the_steps_the_policy_asks_for() -> None:
    assert THRESHOLDS.train_steps == STEPS


CUT = [
    ("a loss alone, and it is wrong", {"loss": 1, "gradient": 0, "update": 0}, "train:diverged"),
    ("a loss and a gradient", {"loss": 1, "gradient": 1, "update": 0}, "train:diverged"),
    ("the second step's loss alone", {"loss": 2, "gradient": 1, "update": 1}, "train:diverged"),
]


@pytest.mark.parametrize(("name", "steps", "outcome"), CUT, ids=[row[0] for row in CUT])
def test_a_step_that_was_cut_off_is_judged_by_what_there_is(name: str, steps: dict[str, int], outcome: str) -> None:
    """The device raised in backward: the loss of that step is there, its gradient is not."""
    del name
    arrays = right(7)
    arrays["curve/loss"] = arrays["curve/loss"] * 1.01
    for curve, kept in steps.items():
        arrays[f"curve/{curve}"] = arrays[f"curve/{curve}"][:kept]
    assert str(judge(arrays, stopped=Check.RUN).outcome) == outcome


def test_nothing_at_all_is_put_down_to_what_stopped_it() -> None:
    arrays = {name: array[:0] if name.startswith("curve/") else array for name, array in right(7).items()}
    assert judge(arrays, stopped=Check.RUN).outcome.kind is Kind.NOT_RUN_BLOCKED
