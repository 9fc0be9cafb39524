"""What a change of the device, of its compiler or of a kernel leaves standing."""

from __future__ import annotations

from typing import Any

import pytest

from neuronqa.domain.outcome import Kind
from neuronqa.domain.reuse import Change, Past, Spared, change, may_hold, spared
from tests.builders import COMPILED, EAGER, vector

PASSED = {Kind.RUN_PASS, Kind.COMPILE_PASS, Kind.PARITY_PASS}
ADD = frozenset({"aten::add.Tensor"})


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ({}, Change()),
        ({"shim": "other"}, Change(everything=True)),
        ({"adapter": "other"}, Change(everything=True)),
        ({"profile_sha256": "b" * 64}, Change(everything=True)),
        ({"profile": "renamed"}, Change()),
        ({"versions": {"torch": "2.13.1"}}, Change(everything=True)),
        ({"passes": "other"}, Change(compiler=True)),
        ({"kernels": {"aten::mul.Tensor": "1", "aten::add.Tensor": "1"}}, Change(operators=ADD)),
        ({"kernels": {}}, Change(operators=frozenset({"aten::mul.Tensor"}))),
        ({"kernels": {"aten::mul.Tensor": "2"}}, Change(operators=frozenset({"aten::mul.Tensor"}))),
        ({"kernels": {"*": "1", "aten::mul.Tensor": "1"}}, Change(everything=True, operators=frozenset({"*"}))),
    ],
)
def test_a_change_is_told_by_whom_it_can_reach(now: dict[str, Any], expected: Change) -> None:
    then = vector(kernels={"aten::mul.Tensor": "1"})
    assert change(then, vector(**{"kernels": {"aten::mul.Tensor": "1"}, **now})) == expected


@pytest.mark.parametrize(
    ("past", "changed", "expected"),
    [
        ({}, Change(), Spared.UNCHANGED),
        ({"complete": False}, Change(), Spared.UNCHANGED),
        ({}, Change(everything=True), Spared.DEVICE),
        ({}, Change(compiler=True), Spared.OUT_OF_REACH),
        ({"variant": COMPILED}, Change(compiler=True), Spared.COMPILER),
        ({}, Change(operators=ADD), Spared.OUT_OF_REACH),
        ({"operators": ADD | {"aten::mul.Tensor"}}, Change(operators=ADD), Spared.KERNEL),
        ({"complete": False}, Change(operators=ADD), Spared.OPERATORS_UNKNOWN),
        ({"kinds": {Kind.RUN_ERROR}}, Change(operators=ADD), Spared.OPERATORS_UNKNOWN),
        ({"kinds": {Kind.RUN_ERROR}}, Change(), Spared.UNCHANGED),
        ({"variant": COMPILED, "kinds": {Kind.RUN_PASS}}, Change(operators=ADD), Spared.OPERATORS_UNKNOWN),
        ({"kinds": {Kind.RUN_CRASH, Kind.NOT_RUN_BLOCKED}}, Change(), Spared.UNCHANGED),
        ({"kinds": PASSED | {Kind.RUN_TIMEOUT}}, Change(), Spared.UNSETTLED),
        ({"kinds": PASSED | {Kind.INFRA_LOST}}, Change(), Spared.UNSETTLED),
        ({"kinds": PASSED | {Kind.INCONCLUSIVE_FLAKY}}, Change(), Spared.UNSETTLED),
    ],
)
def test_a_verdict_holds_unless_something_it_depends_on_changed(
    past: dict[str, Any], changed: Change, expected: Spared
) -> None:
    values: dict[str, Any] = {"variant": EAGER, "kinds": PASSED, "operators": {"aten::mul.Tensor"}, "complete": True}
    assert spared(Past(**{**values, **past}), changed) is expected


def test_what_depends_on_the_machine_or_is_open_is_never_carried_over() -> None:
    never = {kind for kind in Kind if not may_hold(kind)}
    assert {kind for kind in Kind if kind.reason in ("timeout", "oom", "killed")} <= never
    assert {kind for kind in Kind if kind.stage in ("inconclusive", "infra")} <= never
    assert not never & {kind for kind in Kind if kind.reason == "pass"}
