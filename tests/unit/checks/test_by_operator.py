"""When a step was searched operator by operator, the search decides what the tensors cannot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from neuronqa.checks import operators, parity, training
from neuronqa.domain.case import Dtype, Variant
from neuronqa.domain.observation import Deviation, Observation, Progress
from neuronqa.domain.outcome import Kind
from tests.unit.checks.made import COMPILE, EAGER, THRESHOLDS, Arrays, device, reference, reference_arrays, right, seen

CLEAN = Observation(role="deviation", reached=Progress.DONE, searched=100, decided=100, parted="")
MM = Deviation(op="aten::mm", dtype="float32", position=3, kind="parity:scale", ratio=900.0, words="off by 1")
GELU = Deviation(op="aten::gelu", dtype="float32", position=1, kind="parity:scatter", ratio=2.0)


def noisy() -> Arrays:
    """A reference whose gradients rounding hides."""
    arrays = reference_arrays()
    for name in list(arrays):
        if name.startswith("noise/grad"):
            arrays[name] = np.full_like(arrays[name], 1.0)
        if name.startswith("gain/grad"):
            arrays[name] = np.asarray([3.0, -2.0, 0.1])
    return arrays


def wrong() -> Arrays:
    arrays = right(7)
    arrays["output/logits"] = arrays["output/logits"] + np.float32(0.01)
    return arrays


def judge(arrays: Arrays, search: Observation | None, again: Arrays | None = None, **more: object) -> str:
    variant = more.pop("variant", EAGER)
    against = reference(more.pop("recorded", None))  # type: ignore[arg-type]
    assert isinstance(variant, Variant)
    attempt = replace(
        seen(device(arrays), arrays, variant=variant, against=against),
        search=search,
        search_arrays=arrays if again is None else again,
    )
    return str(parity.judge(attempt).outcome)


TABLE = [
    ("not searched", wrong(), None, "parity:offset(output)"),
    ("operator found", wrong(), replace(CLEAN, deviations=(MM,)), "parity:scale(aten::mm float32)"),
    ("the decisive one", wrong(), replace(CLEAN, deviations=(GELU, MM)), "parity:scale(aten::mm float32)"),
    ("every operator right", wrong(), CLEAN, "parity:pass"),
    ("search not finished", wrong(), replace(CLEAN, reached=Progress.BACKWARD), "parity:offset(output)"),
    ("search with a gap", wrong(), replace(CLEAN, unanswered=1), "parity:offset(output)"),
    ("a step that is not the host's", wrong(), replace(CLEAN, parted="call 3"), "parity:offset(output)"),
    ("search of nothing", wrong(), replace(CLEAN, searched=0), "parity:offset(output)"),
    ("search that decides little", wrong(), replace(CLEAN, decided=10), "parity:offset(output)"),
]


@pytest.mark.parametrize(("name", "arrays", "search", "outcome"), TABLE, ids=[row[0] for row in TABLE])
def test_wrong_tensors_with_such_a_search_are_judged_so(
    name: str, arrays: Arrays, search: Observation | None, outcome: str
) -> None:
    assert judge(arrays, search) == outcome, name


def test_tensors_that_rounding_hides_are_judged_by_operator() -> None:
    assert judge(right(7), None, recorded=noisy()) == "inconclusive:no-power(gradients)"
    assert judge(right(7), CLEAN, recorded=noisy()) == "parity:pass"
    assert judge(right(7), replace(CLEAN, deviations=(MM,)), recorded=noisy()) == "parity:scale(aten::mm float32)"


def test_a_wrong_update_is_not_excused() -> None:
    arrays = right(7)
    arrays["param/first.weight"] = arrays["param/first.weight"] * np.float32(1.5)
    assert judge(arrays, CLEAN).endswith("(update)")


def test_tensors_that_rounding_hides_are_not_judged_by_a_step_that_is_not_the_hosts() -> None:
    search = replace(CLEAN, parted="call 3 is aten::mul on the device and aten::add on the host")
    assert judge(right(7), search, recorded=noisy()) == "inconclusive:no-power(gradients)"


def test_a_step_that_differs_when_it_is_run_again_is_flaky() -> None:
    assert judge(wrong(), CLEAN, again=right(7)) == "inconclusive:flaky(2 variants in 2 runs)"


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_right_operators_excuse_no_nan(value: float) -> None:
    arrays = right(7)
    arrays["loss"] = np.asarray(value, dtype=np.float32)
    assert judge(arrays, CLEAN).startswith("parity:")
    assert judge(arrays, CLEAN) != "parity:pass"


def test_a_compiled_graph_may_be_wrong_between_right_operators() -> None:
    assert judge(wrong(), CLEAN, variant=COMPILE) == "parity:offset(output)"


def test_further_wrong_operators_are_causes_of_their_own() -> None:
    attempt = replace(seen(device(wrong()), wrong()), search=replace(CLEAN, deviations=(GELU, MM)))
    found = parity.judge(attempt)
    assert [str(one) for one in found.others] == ["parity:scatter(aten::gelu float32)"]
    assert [one["op"] for one in found.evidence["deviations"]] == ["aten::gelu", "aten::mm"]


def test_training_that_leaves_names_the_operator_too() -> None:
    arrays = right(7)
    arrays["curve/gradient"] = arrays["curve/gradient"] * 2
    attempt = replace(seen(device(arrays), arrays), search=replace(CLEAN, deviations=(MM,)))
    assert str(training.judge(attempt).outcome) == "train:gradient-norm(aten::mm float32)"


ONES = np.ones((4, 3), dtype=np.float32)
CALLS = [
    ("equal", ONES, ONES, None),
    ("scaled", ONES * np.float32(1.01), ONES, Kind.PARITY_SCALE),
    ("another shape", ONES[:2], ONES, Kind.PARITY_SHAPE),
    ("whole numbers", np.arange(3), np.arange(3) + 1, Kind.PARITY_SCATTER),
    ("the host's own NaN", np.full(3, np.nan), np.full(3, np.nan), None),
    ("NaN for a number", np.full(3, np.nan), np.zeros(3), Kind.PARITY_NAN),
    ("a number for NaN", np.zeros(3), np.full(3, np.nan), Kind.PARITY_SCATTER),
    ("minus infinity for infinity", np.full(3, -np.inf), np.full(3, np.inf), Kind.PARITY_SCATTER),
    ("zeros", np.zeros(3), np.zeros(3), None),
    ("something for zeros", np.full(3, 1e-9), np.zeros(3), Kind.PARITY_SCATTER),
    ("zeros for what is too small to hold", np.zeros(3), np.full(3, 1e-45), None),
    ("something for what is too small to hold", np.full(3, 1e-30), np.full(3, 1e-45), Kind.PARITY_SCALE),
    ("nothing", np.zeros((0, 3)), np.zeros((0, 3)), None),
]


@pytest.mark.parametrize(("name", "found", "host", "kind"), CALLS, ids=[row[0] for row in CALLS])
def test_a_call_that_returns_so_is_judged_so(
    name: str, found: np.ndarray[tuple[int, ...], np.dtype[np.float32]], host: Arrays, kind: Kind | None
) -> None:
    oracle = np.asarray(host, dtype=np.float64)
    same = np.asarray(host)
    assert operators.compare(found, same, oracle, Dtype.FP32, THRESHOLDS).kind is kind, name


def test_a_device_that_moves_more_from_run_to_run_than_rounding_is_flaky_unless_the_cpu_does_too() -> None:
    unsteady = {**right(7), "again/grad/first.weight": np.asarray(1.0)}
    assert judge(unsteady, None) == "inconclusive:flaky(2 variants in 2 runs)"
    assert judge(unsteady, replace(CLEAN, deviations=(MM,))) == "parity:scale(aten::mm float32)"
    both = {**reference_arrays(), "again/grad/first.weight": np.asarray(1.0)}
    assert judge(unsteady, None, recorded=both) == "parity:pass"


def test_a_device_that_moves_within_rounding_is_steady() -> None:
    assert judge({**right(7), "again/grad/first.weight": np.asarray(1e-10)}, None) == "parity:pass"
