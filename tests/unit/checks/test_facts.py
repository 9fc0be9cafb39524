"""Fallback, graph and state: facts that were seen count, what was not seen is no pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from neuronqa.checks import device_checks, fallback, graph, state
from neuronqa.domain.observation import GraphBreak, GraphUse, Observation, OpUse, Placement, Progress, StateUse
from neuronqa.domain.outcome import Check
from tests.unit.checks.made import COMPILE, THRESHOLDS, device, right, seen

WHOLE = device(right(1))
NATIVE = OpUse(op="aten::mm", dtype="float32", placement=Placement.NATIVE, count=90, ns=900)


def fell(op: str, mechanism: int, **more: Any) -> OpUse:
    return replace(NATIVE, op=op, placement=Placement.CPU, mechanism=mechanism, count=1, ns=100, **more)


CUMSUM = fell("aten::cumsum", 1, nbytes=512)

FALLBACK_TABLE = [
    ("all native", (NATIVE,), True, (), None, "fallback:pass"),
    ("no kernel", (NATIVE, CUMSUM), True, (), None, "fallback:no-kernel(aten::cumsum float32)"),
    ("arguments refused", (NATIVE, fell("aten::pow", 2)), True, (), None, "fallback:arguments(aten::pow float32)"),
    ("recovered", (NATIVE, fell("aten::add", 3)), True, (), None, "fallback:recovered(aten::add float32)"),
    ("hidden in a kernel", (NATIVE, fell("aten::qr", 4)), True, (), None, "fallback:hidden(aten::qr float32)"),
    ("whole graph", (NATIVE, fell("graph", 5)), True, (), None, "fallback:whole-graph(graph float32)"),
    (
        "the costliest speaks",
        (CUMSUM, fell("aten::qr", 4, nbytes=9)),
        True,
        (),
        None,
        "fallback:no-kernel(aten::cumsum float32)",
    ),
    ("seen before a crash", (NATIVE, CUMSUM), False, (), Check.RUN, "fallback:no-kernel(aten::cumsum float32)"),
    ("crash, none seen", (NATIVE,), False, (), Check.RUN, "not-run:blocked(run)"),
    ("record has holes", (NATIVE,), False, (), None, "inconclusive:not-observable"),
    ("device cannot say", (NATIVE,), True, ("fallback",), None, "inconclusive:not-observable"),
    ("nothing recorded", (), True, (), None, "inconclusive:no-power(no operators)"),
]


@pytest.mark.parametrize(
    ("name", "ops", "complete", "blind", "stopped", "outcome"), FALLBACK_TABLE, ids=[r[0] for r in FALLBACK_TABLE]
)
def test_operators_that_ran_so_are_judged_so(
    name: str, ops: tuple[OpUse, ...], complete: bool, blind: tuple[str, ...], stopped: Check | None, outcome: str
) -> None:
    observation = replace(WHOLE, ops=ops, ops_complete=complete, not_observable=blind)
    assert str(fallback.judge(seen(observation, stopped=stopped)).outcome) == outcome, name


def test_each_operator_that_fell_back_is_a_cause_of_its_own() -> None:
    hidden = fell("aten::qr", 4, reported=False)
    found = fallback.judge(seen(replace(WHOLE, ops=(NATIVE, CUMSUM, hidden))))
    assert [str(other) for other in found.others] == ["fallback:hidden(aten::qr float32)"]
    assert found.measure == pytest.approx(200 / 1100)
    assert found.evidence["listed_by_device"] == ["aten::cumsum"]
    assert found.evidence["hidden_from_device_list"] == ["aten::qr"]
    assert found.evidence["uses"][0]["bytes"] == 512


BREAK = GraphBreak(registry_id="GB0170", reason="Data-dependent branching: on a tensor", frame="m.py:7 forward")
GRAPH = GraphUse(graphs=1, ops=(12,), backend_calls=1, executions=8)

UNNAMED = replace(BREAK, registry_id="")
BROKEN = "graph:break(GB0170 Data-dependent branching)"
GUARD = "size of x: expected 2, actual 3"
UNASKED = GraphUse(graphs=0, ops=())
GRAPH_TABLE = [
    ("one graph", GRAPH, None, "graph:pass"),
    ("broken", replace(GRAPH, breaks=(BREAK,)), None, BROKEN),
    ("broken, then crashed", replace(GRAPH, breaks=(BREAK,)), Check.RUN, BROKEN),
    ("without an id", replace(GRAPH, breaks=(UNNAMED,)), None, "graph:break(Data-dependent branching)"),
    ("recompiled", replace(GRAPH, recompiles=(GUARD,)), None, "graph:recompile(size of x: expected N, actual N)"),
    ("crashed", GRAPH, Check.RUN, "not-run:blocked(run)"),
    ("not compiled", UNASKED, None, "not-run:blocked(compile)"),
    ("nothing known", None, Check.LOAD, "not-run:blocked(load)"),
]


@pytest.mark.parametrize(("name", "use", "stopped", "outcome"), GRAPH_TABLE, ids=[r[0] for r in GRAPH_TABLE])
def test_a_capture_that_went_so_is_judged_so(
    name: str, use: GraphUse | None, stopped: Check | None, outcome: str
) -> None:
    found = graph.judge(seen(replace(WHOLE, graph=use), stopped=stopped, variant=COMPILE))
    assert str(found.outcome) == outcome, name


def test_each_reason_to_break_is_a_cause_of_its_own() -> None:
    printed = replace(BREAK, registry_id="GB0059", reason="Failed to trace builtin operator: print", count=2)
    found = graph.judge(seen(replace(WHOLE, graph=replace(GRAPH, breaks=(BREAK, printed))), variant=COMPILE))
    assert [str(other) for other in found.others] == ["graph:break(GB0059 Failed to trace builtin operator)"]
    assert found.measure == 3


def test_breaks_a_policy_allows_pass() -> None:
    broken = replace(WHOLE, graph=replace(GRAPH, breaks=(BREAK,)))
    found = graph.judge(seen(broken, variant=COMPILE, thresholds=replace(THRESHOLDS, graph_breaks=1)))
    assert str(found.outcome) == "graph:pass"


STATE_TABLE = [
    ("all as before", StateUse(), None, "state:pass"),
    ("untied", StateUse(untied=("head",)), None, "state:untied"),
    ("replaced", StateUse(replaced=("head",)), None, "state:replaced"),
    ("left behind", StateUse(left_behind=("table",)), None, "state:left-behind"),
    ("dtype", StateUse(wrong_dtype=("table",)), None, "state:dtype"),
    ("changed", StateUse(changed=("table",)), None, "state:changed"),
    ("the worst speaks", StateUse(changed=("a",), untied=("b",), left_behind=("c",)), None, "state:left-behind"),
    ("seen before a crash", StateUse(untied=("head",)), Check.RUN, "state:untied"),
    ("crash, nothing seen", StateUse(), Check.RUN, "not-run:blocked(run)"),
]


@pytest.mark.parametrize(("name", "use", "stopped", "outcome"), STATE_TABLE, ids=[r[0] for r in STATE_TABLE])
def test_a_module_left_so_is_judged_so(name: str, use: StateUse, stopped: Check | None, outcome: str) -> None:
    assert str(state.judge(seen(replace(WHOLE, state=use), stopped=stopped)).outcome) == outcome, name


def test_further_changes_of_state_are_named_too() -> None:
    found = state.judge(seen(replace(WHOLE, state=StateUse(changed=("a",), untied=("b",)))))
    assert [str(other) for other in found.others] == ["state:changed"]


@pytest.mark.parametrize("judge", [fallback.judge, state.judge])
def test_a_child_that_left_nothing_blocks_the_check(judge: object) -> None:
    assert str(judge(seen(None, stopped=Check.RUN)).outcome) == "not-run:blocked(run)"  # type: ignore[operator]


def test_a_state_seen_only_after_the_move_is_no_pass() -> None:
    half: Observation = replace(WHOLE, reached=Progress.LOAD)
    assert str(state.judge(seen(half, stopped=Check.RUN)).outcome) == "not-run:blocked(run)"


def test_every_check_of_a_device_is_answered_by_one_module() -> None:
    fit = {Check.FIT}
    of_the_reference = {Check.BUILD, Check.INPUTS, Check.REFERENCE}
    assert set(device_checks()) == set(Check) - of_the_reference - fit
