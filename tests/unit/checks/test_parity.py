"""Parity can fail, on every tensor, in every class, and does not cry wolf."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuronqa.checks import parity
from neuronqa.checks.steps import adamw_step
from neuronqa.checks.tensors import Exempt
from neuronqa.domain.case import Variant
from neuronqa.domain.finding import Finding
from neuronqa.domain.outcome import Check, Kind, Standing
from tests.unit.checks.made import (
    COMPILED,
    EAGER,
    PARAMETERS,
    Arrays,
    device,
    reference,
    reference_arrays,
    right,
    seen,
    truth,
)

REFERENCE = reference()
FLOATS = [name for name in truth() if name != "output/choice"]


def judge(arrays: Arrays, stopped: Check | None = None, variant: Variant = EAGER) -> Finding:
    return parity.judge(seen(device(arrays), arrays, stopped=stopped, variant=variant, against=REFERENCE))


def spoilt(name: str, change: object) -> Arrays:
    arrays = right(7)
    arrays[name] = np.asarray(change(arrays[name]), dtype=arrays[name].dtype)  # type: ignore[operator]
    return arrays


def test_a_right_run_passes_and_says_how_close_it_came() -> None:
    found = judge(right(7))
    assert found.outcome.kind is Kind.PARITY_PASS
    assert found.measure is not None
    assert found.measure < 0.5
    assert found.evidence["compared_by_group"] == {"output": 2, "loss": 1, "buffer": 1, "grad": 3, "update": 3}


def test_the_errors_of_deciding_tensors_are_counted_by_size() -> None:
    right_ones, one_wrong = (judge(a).evidence["histogram"]["counts"] for a in (right(7), spoilt("loss", lambda a: -a)))
    assert (sum(right_ones), sum(right_ones[4:])) == (10, 0)
    assert (sum(one_wrong), sum(one_wrong[4:]), one_wrong[-1]) == (10, 1, 1)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda a: a * 0, Kind.PARITY_ZERO),
        (lambda a: -a, Kind.PARITY_SIGN),
        (lambda a: a * 1.5, Kind.PARITY_SCALE),
        (lambda a: a * 0.98, Kind.PARITY_SCALE),
        (lambda a: a * np.nan, Kind.PARITY_NAN),
        (lambda a: a + np.inf, Kind.PARITY_INF),
    ],
)
def test_a_spoilt_tensor_is_found_and_its_class_named(name: str, change: object, kind: Kind) -> None:
    found = judge(spoilt(name, change))
    assert found.outcome.kind is kind
    assert found.evidence["first"]["tensor"] == name


@pytest.mark.parametrize("name", [name for name in FLOATS if name != "loss"])
def test_a_shuffled_tensor_is_found(name: str) -> None:
    shuffle = np.random.default_rng(0).permutation
    found = judge(spoilt(name, lambda a: shuffle(a.ravel()).reshape(a.shape)))
    assert found.outcome.kind is Kind.PARITY_SCATTER


def test_a_constant_added_is_an_offset() -> None:
    assert judge(spoilt("grad/first.weight", lambda a: a + 0.003)).outcome.kind is Kind.PARITY_OFFSET


def test_one_wrong_element_is_found() -> None:
    def change(
        array: np.ndarray[tuple[int, int], np.dtype[np.float32]],
    ) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        array[1, 2] *= 1.001
        return array

    assert judge(spoilt("grad/first.weight", change)).outcome.standing is Standing.FAIL


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_a_step_that_does_not_follow_from_its_gradient_is_found(name: str) -> None:
    arrays = right(7)
    start = REFERENCE.weights[f"param/{name}"]
    arrays[f"param/{name}"] = start + np.float32(0.9) * (arrays[f"param/{name}"] - start)
    found = judge(arrays)
    assert (found.outcome.kind, found.outcome.detail) == (Kind.PARITY_SCALE, "update")


def test_a_step_that_follows_from_a_slightly_different_gradient_is_right() -> None:
    """AdamW's first step is nearly the sign of the gradient, so noise around zero moves it by the whole rate."""
    tiny = truth()
    tiny["grad/first.bias"][3] = 1e-10
    arrays = right(7, tiny)
    reversed_gradient = arrays["grad/first.bias"].copy()
    reversed_gradient[3] = -1e-10
    start = REFERENCE.weights["param/first.bias"]
    step = adamw_step(start, reversed_gradient)
    arrays["grad/first.bias"], arrays["param/first.bias"] = (
        reversed_gradient,
        np.asarray(start + step, dtype=np.float32),
    )
    against = reference(reference_arrays(tiny))
    found = parity.judge(seen(device(arrays), arrays, against=against))
    assert found.outcome.kind is Kind.PARITY_PASS


def without(*names: str) -> Arrays:
    return {name: array for name, array in right(7).items() if name not in names}


def test_an_output_that_is_missing_or_new_is_another_structure() -> None:
    assert judge(without("output/logits")).outcome.kind is Kind.PARITY_STRUCTURE
    assert judge({**right(7), "output/extra": np.zeros(3)}).outcome.kind is Kind.PARITY_STRUCTURE


def test_a_gradient_that_only_one_side_has_is_missing() -> None:
    assert judge(without("grad/last.weight")).outcome.kind is Kind.PARITY_MISSING
    assert judge({**right(7), "grad/frozen": np.zeros(3)}).outcome.kind is Kind.PARITY_MISSING


def test_another_shape_or_dtype_is_named() -> None:
    assert judge({**right(7), "output/logits": right(7)["output/logits"][:4]}).outcome.kind is Kind.PARITY_SHAPE
    assert judge({**right(7), "loss": right(7)["loss"].astype(np.float64)}).outcome.kind is Kind.PARITY_DTYPE


def test_whole_numbers_must_be_equal() -> None:
    assert judge({**right(7), "output/choice": np.arange(5) + 1}).outcome.kind is Kind.PARITY_SCATTER


def test_nothing_compared_is_no_pass() -> None:
    assert str(judge({}).outcome) == "not-run:blocked(run)"


def test_a_run_that_stopped_shows_what_was_wrong_before_and_else_nothing() -> None:
    half = {name: array for name, array in right(7).items() if name.startswith(("output/", "loss"))}
    assert str(judge(half, Check.RUN).outcome) == "not-run:blocked(run)"
    half["loss"] = half["loss"] * np.float32(1.5)
    assert str(judge(half, Check.RUN).outcome) == "parity:scale(loss)"


def judge_without_power(oracle: Arrays) -> Finding:
    arrays = right(7, oracle)
    return parity.judge(seen(device(arrays), arrays, against=reference(reference_arrays(oracle))))


def test_a_model_without_outputs_has_no_power() -> None:
    oracle = {name: array for name, array in truth().items() if not name.startswith("output/")}
    assert str(judge_without_power(oracle).outcome) == "inconclusive:no-power(no outputs)"


def test_outputs_of_zeros_have_no_power() -> None:
    oracle = {**truth(), "output/logits": np.zeros((5, 4))}
    del oracle["output/choice"]
    assert str(judge_without_power(oracle).outcome) == "inconclusive:no-power(outputs)"


def test_gradients_of_zeros_have_no_power() -> None:
    oracle = {name: array * 0 if name.startswith("grad/") else array for name, array in truth().items()}
    assert str(judge_without_power(oracle).outcome) == "inconclusive:no-power(gradients)"


def test_an_exempt_tensor_is_counted_and_still_fails_when_it_blows_up() -> None:
    oracle = truth()
    oracle["grad/first.bias"] = 1e-18 * oracle["grad/first.bias"]
    recorded = reference_arrays(oracle)
    recorded["noise/grad/first.bias"] = np.full(8, 1e-10, dtype=np.float32)
    recorded["gain/grad/first.bias"] = np.asarray([1e8, -1e8, 1e8])
    against = reference(recorded)
    assert against.yardsticks["grad/first.bias"].exempt is Exempt.NOISE
    arrays = right(7, oracle)
    arrays["grad/first.bias"] = np.full(8, 1e-9, dtype=np.float32)
    arrays["param/first.bias"] = _stepped("first.bias", arrays)
    found = parity.judge(seen(device(arrays), arrays, against=against))
    assert found.outcome.kind is Kind.PARITY_PASS
    assert found.evidence["exempt_tensors"] == ["grad/first.bias", "update/first.bias"]
    wrong = {**arrays, "grad/first.bias": np.full(8, 1e-3, dtype=np.float32)}
    wrong["param/first.bias"] = _stepped("first.bias", wrong)
    assert parity.judge(seen(device(wrong), wrong, against=against)).outcome.kind is Kind.PARITY_SCATTER


def _stepped(name: str, arrays: Arrays) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    start = REFERENCE.weights[f"param/{name}"]
    return np.asarray(start + adamw_step(start, arrays[f"grad/{name}"]), dtype=np.float32)


def test_the_gravest_class_speaks_then_the_earliest_tensor() -> None:
    arrays = spoilt("grad/last.weight", lambda a: a * 1.5)
    arrays["grad/first.weight"] = arrays["grad/first.weight"] * np.float32(0.0)
    found = judge(arrays)
    assert found.evidence["first"]["tensor"] == "grad/last.weight"
    arrays["grad/first.weight"][0, 0] = np.nan
    assert judge(arrays).outcome.kind is Kind.PARITY_NAN


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(min_value=1000, max_value=10**9))
def test_no_right_run_is_called_wrong(seed: int) -> None:
    assert judge(right(seed)).outcome.kind is Kind.PARITY_PASS


@settings(max_examples=100, deadline=None)
@given(name=st.sampled_from(FLOATS), exponent=st.floats(min_value=-4.5, max_value=3), sign=st.sampled_from([-1, 1]))
def test_every_change_of_scale_beyond_rounding_is_found_and_ordered(name: str, exponent: float, sign: int) -> None:
    factor = 1 + sign * 10.0**exponent
    found = judge(spoilt(name, lambda a: a * factor))
    assert found.outcome.standing is Standing.FAIL
    worse = judge(spoilt(name, lambda a: a * (1 + sign * 3 * 10.0**exponent)))
    assert found.measure is not None
    assert worse.measure is not None
    assert worse.measure > found.measure


def test_the_judge_needs_no_reference_of_inference_to_have_gradients() -> None:
    oracle = {name: array for name, array in truth().items() if name.startswith("output/")}
    given = {name: array for name, array in reference_arrays().items() if name.partition("/")[2] in oracle}
    arrays = {name: array for name, array in right(7).items() if name in oracle}
    variant = Variant.parse("eager/fp32/infer")
    found = parity.judge(seen(device(arrays), arrays, variant=variant, against=reference(given)))
    assert found.outcome.kind is Kind.PARITY_PASS


def test_zeros_of_a_compiled_backward_stand_for_no_gradient_and_are_shown() -> None:
    """The smallest case of a decoder that never looks at its encoder: autograd leaves None, AOTAutograd zeros."""
    found = judge({**right(7), "grad/frozen": np.zeros(3)}, variant=COMPILED)
    assert found.outcome.kind is Kind.PARITY_PASS
    assert found.evidence["exempt_by_reason"] == {"unreached": 1}
    assert found.evidence["exempt_tensors"] == ["grad/frozen"]


@pytest.mark.parametrize("values", [[0.0, 1e-30, 0.0], [0.0, np.nan, 0.0]])
def test_any_other_gradient_out_of_nowhere_fails(values: list[float]) -> None:
    for variant in (EAGER, COMPILED):
        found = judge({**right(7), "grad/frozen": np.asarray(values)}, variant=variant)
        assert found.outcome.kind is Kind.PARITY_MISSING
