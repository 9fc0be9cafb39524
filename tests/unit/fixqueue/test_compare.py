"""What a kernel gave against what the CPU gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from neuronqa.fixqueue import compare
from neuronqa.fixqueue.kinds import Route
from neuronqa.fixqueue.reason import Reason

EXACT = np.linspace(-2, 2, 12)
SINGLE = EXACT.astype(np.float32)
WHAT = {"dtype": "float32", "shape": [12]}


def judged(
    ours: Any = SINGLE,
    *,
    kind: str = "plain",
    gradient: Any = SINGLE,
    op: str = "r0",
    named: str = "aten::maximum",
    **seen: Any,
) -> Reason | None:
    call = {"id": 0, "kind": kind, "op": named}
    expected = {"values": {op: WHAT}, "gradients": {"g0": WHAT}, "aliases": [False], "changed": []}
    said = {**expected, "error": "", "fell_back": [], "operators": 3, "repeats": True, **seen}
    wanted = {
        f"0/{side}/{name}": EXACT if side == "exact" else SINGLE for side in ("cpu", "exact") for name in (op, "g0")
    }
    return compare.difference(call, expected, said, wanted, {f"0/{op}": np.asarray(ours), "0/g0": np.asarray(gradient)})


def test_what_rounds_as_the_cpu_does_is_right() -> None:
    assert judged() is None
    assert judged(SINGLE * (1 + 2e-7)) is None


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"ours": SINGLE * 1.0001}, Reason.VALUES),
        ({"ours": SINGLE * 1.0001, "kind": "strides"}, Reason.STRIDES),
        ({"ours": SINGLE * 1.0001, "kind": "broadcasting"}, Reason.BROADCASTING),
        ({"ours": SINGLE * 1.0001, "kind": "empty"}, Reason.EMPTY),
        ({"ours": SINGLE * 1.0001, "op": "m0"}, Reason.IN_PLACE),
        ({"ours": np.where(SINGLE > 1, np.nan, SINGLE)}, Reason.VALUES),
        ({"ours": np.where(SINGLE > 1, np.inf, SINGLE), "kind": "not-finite"}, Reason.NOT_FINITE),
        ({"ours": SINGLE[:3]}, Reason.VALUES),
        ({"gradient": SINGLE * 0.98}, Reason.BACKWARD),
        ({"gradient": SINGLE * 0.98, "kind": "strides"}, Reason.BACKWARD_STRIDES),
        ({"gradients": {"g0": None}}, Reason.BACKWARD),
        ({"error": "RuntimeError"}, Reason.RAISES),
        ({"error": "RuntimeError", "kind": "empty"}, Reason.EMPTY),
        ({"fell_back": ["aten::maximum"]}, Reason.FALLS_BACK),
        ({"changed": ["0/1"]}, Reason.CHANGES_INPUTS),
        ({"aliases": [True]}, Reason.ALIASES),
        ({"repeats": False}, Reason.NOT_REPEATABLE),
        ({"operators": 5000}, Reason.TOO_SLOW),
        ({"values": {"r0": {"dtype": "float64", "shape": [12]}}}, Reason.RESULT_KIND),
        ({"values": {}}, Reason.RESULT_KIND),
    ],
)
def test_every_way_to_be_wrong_has_its_reason(given: dict[str, Any], reason: Reason) -> None:
    assert judged(**given) is reason


@pytest.mark.parametrize("dtype", list(compare.EPSILON))
def test_a_result_that_is_two_percent_off_is_wrong_in_single_and_ten_in_half_precision(dtype: str) -> None:
    wide = compare.EPSILON[dtype] > 1e-4
    assert not compare.close(EXACT * (1.1 if wide else 1.02), EXACT, EXACT, dtype)


def of_routes(ours: Any, **routes: Any) -> bool:
    return compare.close_to_one(np.array(ours), {Route(name): np.array(one) for name, one in routes.items()}, "float32")


NAN, INF = float("nan"), float("inf")
AGREEING = {route: [1.0, NAN, INF, -2.0] for route in ("cpu", "exact", "apart")}
TORN = {"cpu": [0.0, NAN], "exact": [0.0, NAN], "apart": [1.5, NAN]}


@pytest.mark.parametrize(
    ("ours", "right"),
    [
        ([1.0, NAN, INF, -2.0], True),
        ([1.0000001, NAN, INF, -2.0], True),
        ([1.0, 0.0, INF, -2.0], False),
        ([1.0, NAN, NAN, -2.0], False),
        ([1.0, NAN, -INF, -2.0], False),
        ([NAN, NAN, INF, -2.0], False),
        ([0.98, NAN, INF, -2.0], False),
        ([NAN] * 4, False),
        ([0.0] * 4, False),
    ],
)
def test_where_the_routes_of_the_cpu_agree_nothing_else_is_right(ours: list[float], right: bool) -> None:
    assert of_routes(ours, **AGREEING) is right


@pytest.mark.parametrize(
    ("ours", "right"),
    [([0.0, NAN], True), ([1.5, NAN], True), ([0.75, NAN], False), ([NAN, NAN], False), ([0.0, 0.0], False)],
)
def test_where_they_do_not_either_is_right_and_nothing_between(ours: list[float], right: bool) -> None:
    assert of_routes(ours, **TORN) is right


def test_a_backward_operator_is_compared_where_inputs_are_not_finite() -> None:
    wrong = np.where(SINGLE > 1, np.nan, SINGLE)
    assert judged(wrong, kind="not-finite", named="aten::hardtanh_backward") is Reason.NOT_FINITE
    assert judged(gradient=wrong, kind="not-finite") is Reason.BACKWARD_NOT_FINITE


def test_nothing_is_compared_to_nothing() -> None:
    empty = np.zeros((0, 3))
    assert compare.close(empty, empty, empty, "float32")


def test_what_is_not_finite_must_be_so_in_the_same_place_and_of_the_same_sign() -> None:
    cpu = np.array([np.nan, np.inf, -np.inf, 1.0])
    assert compare.close(cpu, cpu, cpu, "float32")
    for at, wrong in ((0, 0.0), (1, -np.inf), (2, np.nan), (3, np.inf)):
        ours = cpu.copy()
        ours[at] = wrong
        assert not compare.close(ours, cpu, cpu, "float32")


@pytest.mark.parametrize(
    ("found", "right", "several", "said"),
    [
        ({Reason.NOT_FINITE: 3, Reason.STRIDES: 1}, 4, False, Reason.STRIDES),
        ({Reason.VALUES: 3, Reason.STRIDES: 1}, 0, False, Reason.VALUES),
        ({Reason.VALUES: 3}, 2, False, Reason.SHAPES),
        ({Reason.VALUES: 3}, 2, True, Reason.DTYPES),
        ({Reason.VALUES: 3, Reason.FALLS_BACK: 1}, 2, True, Reason.FALLS_BACK),
    ],
)
def test_the_plainest_difference_is_told(found: dict[Reason, int], right: int, several: bool, said: Reason) -> None:
    assert compare.summary(found, right, several) is said
